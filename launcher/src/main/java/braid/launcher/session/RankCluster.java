package braid.launcher.session;

import braid.internal.rank.Env;
import braid.internal.shared.SharedFileSweep;
import braid.internal.store.StoreServer;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.Origins;
import braid.launcher.fanout.FanOut;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankKind;
import braid.launcher.ranks.RankSet;
import braid.model.BraidException;
import braid.natives.JavaCpp;
import java.io.IOException;
import java.net.InetAddress;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The ranks and their compiler, which a restart replaces.
final class RankCluster implements AutoCloseable {
  /// Prepares the folder of native libraries, so that a refusal comes before any rank starts.
  private static void prepareLibraries() {
    try {
      JavaCpp.prepare();
    } catch (UnsatisfiedLinkError e) {
      throw new BraidException(String.valueOf(e.getMessage()), e);
    }
  }

  private static final int TOKEN_BYTES = 16;

  /// NVLink multicast is off: a program that dies while using it can take the host's GPUs out of
  /// service.
  private static final Map<String, String> WITHOUT_MULTICAST =
      Map.of("NCCL_NVLS_ENABLE", "0", "NVSHMEM_DISABLE_NVLS", "1");

  /// Number of hardware queues that CUDA gives a process.
  private static final String QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS";

  /// Folder of the daemon of MPS.
  private static final String MPS = "CUDA_MPS_PIPE_DIRECTORY";

  private final String token;
  private final StoreServer store;
  private final RankSet ranks;
  private final FanOut fanOut;
  private final CellCompiler compiler;
  private final Origins origins = new Origins();

  private RankCluster(
      String token, StoreServer store, RankSet ranks, FanOut fanOut, CellCompiler compiler) {
    this.token = token;
    this.store = store;
    this.ranks = ranks;
    this.fanOut = fanOut;
    this.compiler = compiler;
  }

  /// Starts the ranks and, in parallel, the compiler. A failed start leaves nothing open.
  static RankCluster start(SessionOptions options, Consumer<RankEvent> events) {
    SharedFileSweep.ofKilledSessions().line().ifPresent(RankCluster::warn);
    prepareLibraries();
    var token = token();
    var store = openStore(token, options.ranks());
    try {
      return start(options, events, token, store);
    } catch (RuntimeException | Error e) {
      store.close();
      throw e;
    }
  }

  private static RankCluster start(
      SessionOptions options, Consumer<RankEvent> events, String token, StoreServer store) {
    var environment = environment(options, store.port(), System.getenv());
    // Refuses invalid settings here, once and before any process is started.
    var _ = Env.read(withRank(environment, options.ranks(), token));
    var starting =
        new FutureTask<>(
            () ->
                RankSet.start(
                    options.starter(), options.ranks(), token, kind(options), environment, events));
    Thread.ofPlatform().daemon().name("braid-start").start(starting);
    var fanOut = new FanOut(starting);
    @Nullable CellCompiler compiler = null;
    boolean complete = false;
    try {
      compiler = new CellCompiler(fanOut);
      // Imports are compiled but not run: they load the compiler's classes meanwhile.
      Prelude.imports(compiler);
      var ranks = starting.get();
      Prelude.eval(compiler, Prelude.WORLD);
      complete = true;
      return new RankCluster(token, store, ranks, fanOut, compiler);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof BraidException cause) {
        throw cause;
      }
      throw new BraidException("the ranks could not be started: " + e.getCause(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("starting the ranks was interrupted", e);
    } finally {
      if (!complete) {
        if (compiler != null) {
          compiler.close();
        }
        abandon(starting, token);
      }
    }
  }

  /// Ends the ranks of a failed start, without waiting for ranks that are still being started.
  private static void abandon(FutureTask<RankSet> starting, String token) {
    Runnable end =
        () -> {
          try {
            starting.get().close();
          } catch (ExecutionException e) {
            // They did not start, and have been ended.
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          SharedFileSweep.ofSession(token).failures().forEach(RankCluster::warn);
        };
    if (starting.isDone()) {
      end.run();
    } else {
      Thread.ofPlatform().daemon().name("braid-start-failed").start(end);
    }
  }

  private static RankKind kind(SessionOptions options) {
    return options.backend().isCuda() ? RankKind.GPU : RankKind.HOST;
  }

  private static StoreServer openStore(String token, int ranks) {
    try {
      return StoreServer.open(token, ranks);
    } catch (IOException e) {
      throw new BraidException("the ranks' store could not be opened: " + e.getMessage(), e);
    }
  }

  /// Returns the variables of all ranks, beside those of this process.
  static Map<String, String> environment(
      SessionOptions options, int storePort, Map<String, String> variables) {
    var environment = new HashMap<String, String>(options.variables());
    environment.put("MASTER_ADDR", InetAddress.getLoopbackAddress().getHostAddress());
    environment.put("MASTER_PORT", Integer.toString(storePort));
    environment.put("BRAID_BACKEND", options.backend().kind().toString());
    if (options.backend().isCuda()) {
      environment.putAll(WITHOUT_MULTICAST);
      environment.put(Env.SHARE_GPUS, options.backend().sharesGpus() ? "1" : "0");
      if (variables.getOrDefault(QUEUES, "").isBlank()) {
        // A client of MPS gets 2 queues unless it asks for more. Streams that share one run in
        // order, so one that waits for a signal stops those that are to raise it: ranks hang.
        environment.put(MPS, "/nonexistent");
      }
    }
    options.link().ifPresent(link -> environment.put("BRAID_LINK", link));
    options
        .untilDecided()
        .ifPresent(limit -> environment.put(Env.UNTIL_DECIDED, Long.toString(limit.toSeconds())));
    options.memory().ifPresent(kind -> environment.put("BRAID_SYMMETRIC_MEMORY", kind.toString()));
    return environment;
  }

  private static Map<String, String> withRank(
      Map<String, String> environment, int ranks, String token) {
    var whole = new HashMap<>(System.getenv());
    whole.putAll(environment);
    whole.putAll(
        Map.of(
            "RANK",
            "0",
            "WORLD_SIZE",
            Integer.toString(ranks),
            "LOCAL_RANK",
            "0",
            "LOCAL_WORLD_SIZE",
            Integer.toString(ranks),
            "BRAID_TOKEN",
            token));
    return whole;
  }

  private static void warn(String line) {
    System.err.println("braid: " + line);
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
    store.close();
    SharedFileSweep.ofSession(token).failures().forEach(RankCluster::warn);
  }
}
