package braid.internal.rank;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.natives.cuda.GpuError;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ClosingTest {
  private static final int ILLEGAL_ADDRESS = 700;
  private static final int INVALID_VALUE = 1;

  private final List<String> closed = new ArrayList<>();

  private AutoCloseable good(String name) {
    return () -> closed.add(name);
  }

  private AutoCloseable bad(String name, Exception failure) {
    return () -> {
      closed.add(name);
      throw failure;
    };
  }

  private static GpuError gpu(String call, int code) {
    return new GpuError(call, code, "NAME", "text", "rank 0", "restart the ranks");
  }

  @Test
  void allAreClosedInOrderAndTheFirstFailureIsThrown() {
    var first = new BraidException("the first");
    var second = new BraidException("the second");
    assertThatThrownBy(
            () -> Closing.each(good("a"), bad("b", first), good("c"), bad("d", second), good("e")))
        .isSameAs(first)
        .satisfies(e -> assertThat(e.getSuppressed()).containsExactly(second));
    assertThat(closed).containsExactly("a", "b", "c", "d", "e");
  }

  @Test
  void foreignExceptionsAreWrappedWithTheirCause() {
    var failure = new IOException("full");
    assertThatThrownBy(() -> Closing.each(bad("a", failure)))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("did not close: java.io.IOException: full")
        .hasCause(failure);
  }

  @Test
  void aLostGpuIsReportedOnce() {
    var lost = gpu("cuStreamQuery", ILLEGAL_ADDRESS);
    assertThatThrownBy(
            () ->
                Closing.each(
                    bad("stream", lost),
                    bad("event", gpu("cuEventDestroy", ILLEGAL_ADDRESS)),
                    () -> Closing.each(bad("memory", gpu("cuMemFree", ILLEGAL_ADDRESS))),
                    bad("graph", gpu("cuGraphExecDestroy", INVALID_VALUE)),
                    good("rest")))
        .hasMessage("cuStreamQuery failed: NAME (text) on rank 0; restart the ranks")
        .hasCause(lost)
        .satisfies(
            e ->
                assertThat(e.getSuppressed())
                    .singleElement()
                    .asString()
                    .contains("cuGraphExecDestroy"));
    assertThat(closed).containsExactly("stream", "event", "memory", "graph", "rest");
  }

  @Test
  void aFailureToCloseNeverHidesTheCause() {
    var cause = gpu("cuLaunchKernel", ILLEGAL_ADDRESS);
    Closing.after(cause, bad("a", gpu("cuMemFree", ILLEGAL_ADDRESS)));
    Closing.after(cause, good("b"));
    assertThat(cause.getSuppressed()).isEmpty();
    var other = new BraidException("something else");
    Closing.after(cause, bad("c", other));
    assertThat(cause.getSuppressed()).containsExactly(other);
    assertThat(closed).containsExactly("a", "b", "c");
  }
}
