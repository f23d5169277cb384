package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// A value that a rank cannot send to the front fails its cell and has no other effect.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class WireLimitsTest {
  private static final String HUGE = "\"x\".repeat(300 << 20)";

  private static final String LIMIT =
      "what a cell returns or shows must have at most 67,108,864 characters but has 314,572,800;"
          + " show a part of it, or write it to a file";

  @TempDir static Path home;
  private Session session;

  @BeforeAll
  void start() {
    session = Session.start(new SessionOptions(2, BackendKind.HOST, Optional.empty(), home));
  }

  @AfterAll
  void close() {
    session.close();
  }

  @AfterEach
  void allRanksGoOn() {
    var outcome = session.run(new Cell("next cell", "world.barrier(); 1 + 1"), new Recorded());
    assertThat(outcome.failure()).isEmpty();
    assertThat(outcome.result().orElseThrow().text()).isEqualTo("2");
  }

  private CellFailure failure(String source) {
    var failure = session.run(new Cell("a cell", source), new Recorded()).failure().orElseThrow();
    assertThat(failure.cause()).isEqualTo(CellFailure.Cause.EXCEPTION);
    return failure;
  }

  @Test
  void aResultThatIsTooLarge() {
    assertThat(failure("%%rank 0\n" + HUGE).message()).isEqualTo(LIMIT);
  }

  @Test
  void aDisplayThatIsTooLarge() {
    assertThat(failure("%%rank 0\ndisplay(" + HUGE + ");").message()).isEqualTo(LIMIT);
  }

  @Test
  void anExceptionWhoseMessageIsTooLarge() {
    assertThat(failure("%%rank 0\nthrow new Error(" + HUGE + ");").message())
        .startsWith("xxx")
        .endsWith("x ... (314,572,800 characters in all)")
        .hasSizeLessThan(100_000);
  }

  @Test
  void anExceptionWhoseMethodsThrow() {
    session.run(
        new Cell(
            "a cell",
            """
            class Hostile extends RuntimeException {
              @Override public String getMessage() { throw new IllegalStateException("no"); }
              @Override public synchronized Throwable getCause() { throw new IllegalStateException("no"); }
              @Override public StackTraceElement[] getStackTrace() { throw new IllegalStateException("no"); }
            }
            """),
        new Recorded());
    var failure = failure("throw new Hostile();");
    assertThat(failure.name()).endsWith("Hostile");
    assertThat(failure.message())
        .isEqualTo("(its getMessage() threw java.lang.IllegalStateException)");
  }

  /// Throws a checked exception unseen by the compiler, while the value is turned into text.
  @Test
  void aValueWhoseTextThrowsAnything() {
    session.run(
        new Cell(
            "a cell",
            """
            class Sneaky {
              static <E extends Throwable> void sneak(Throwable e) throws E { throw (E) e; }
              @Override public String toString() {
                Sneaky.<RuntimeException>sneak(new java.io.IOException("no text"));
                return "";
              }
            }
            """),
        new Recorded());
    assertThat(failure("new Sneaky()").message()).isEqualTo("no text");
  }
}
