package braid.launcher.session;

import braid.BraidException;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankSet;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;

/// The ranks with the compiler that feeds them: all that a restart replaces.
final class Crew implements AutoCloseable {
  private static final int TOKEN_BYTES = 16;

  private final RankSet ranks;
  private final FanOut fanOut;
  private final CellCompiler compiler;
  private final Origins origins = new Origins();

  private Crew(RankSet ranks, FanOut fanOut, CellCompiler compiler) {
    this.ranks = ranks;
    this.fanOut = fanOut;
    this.compiler = compiler;
  }

  /// Starts the ranks, and while they start, the compiler.
  static Crew start(SessionOptions options, Consumer<RankEvent> events) {
    var token = token();
    var starting =
        new FutureTask<>(() -> RankSet.start(options.ranks(), token, environment(options), events));
    Thread.ofPlatform().daemon().name("braid-start").start(starting);
    var fanOut = new FanOut(starting);
    var compiler = new CellCompiler(fanOut);
    compiler.warmUp();
    try {
      var crew = new Crew(starting.get(), fanOut, compiler);
      Prelude.eval(compiler);
      return crew;
    } catch (ExecutionException e) {
      compiler.close();
      if (e.getCause() instanceof BraidException cause) {
        throw cause;
      }
      throw new BraidException("the ranks could not be started: " + e.getCause(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("starting the ranks was interrupted", e);
    }
  }

  private static Map<String, String> environment(SessionOptions options) {
    var environment = new HashMap<String, String>();
    environment.put("BRAID_BACKEND", options.backend());
    options.link().ifPresent(link -> environment.put("BRAID_LINK", link));
    return environment;
  }

  private static String token() {
    var bytes = new byte[TOKEN_BYTES];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  RankSet ranks() {
    return ranks;
  }

  FanOut fanOut() {
    return fanOut;
  }

  CellCompiler compiler() {
    return compiler;
  }

  Origins origins() {
    return origins;
  }

  @Override
  public void close() {
    compiler.close();
    ranks.close();
  }
}
