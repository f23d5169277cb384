package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// Session that the tests of a class use one after the other. A test that fails or leaves a dead
/// rank ends it, and the next test gets a new one.
final class SharedSession implements BeforeEachCallback, AfterEachCallback, AfterAllCallback {
  private final Start start;
  private final End end;
  private @Nullable Session session;

  interface Start {
    Session start() throws Exception;
  }

  interface End {
    void end() throws Exception;
  }

  SharedSession(Start start) {
    this(start, () -> {});
  }

  /// @param end ends what a start has made beside the session, after the session, also if the start
  ///   failed
  SharedSession(Start start, End end) {
    this.start = start;
    this.end = end;
  }

  Session get() {
    return Objects.requireNonNull(session);
  }

  /// Runs a cell that must succeed, and returns its result as text.
  String result(String source) {
    var outcome = get().run(new Cell("another cell", source), new Recorded());
    assertThat(outcome.failure()).isEmpty();
    return outcome.result().map(value -> value.text()).orElse("");
  }

  /// Runs a cell that must fail with an exception on a rank. Every rank takes part in the next
  /// cell.
  CellFailure failure(String source) {
    var failure = get().run(new Cell("the cell", source), new Recorded()).failure().orElseThrow();
    assertThat(failure.cause()).isEqualTo(Cause.EXCEPTION);
    assertThat(result("world.gather(\"rank\").size() == world.size()")).isEqualTo("true");
    return failure;
  }

  @Override
  public void beforeEach(ExtensionContext context) throws Exception {
    if (session == null) {
      session = start.start();
    }
  }

  @Override
  public void afterEach(ExtensionContext context) throws Exception {
    if (context.getExecutionException().isPresent() || get().ranks().death().isPresent()) {
      close();
    }
  }

  @Override
  public void afterAll(ExtensionContext context) throws Exception {
    close();
  }

  private void close() throws Exception {
    if (session != null) {
      session.close();
      session = null;
    }
    end.end();
  }
}
