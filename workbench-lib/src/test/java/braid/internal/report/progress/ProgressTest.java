package braid.internal.report.progress;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.rank.Outbox;
import braid.model.MimeBundle;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;

class ProgressTest {
  private static final Progress.Task TASK = new Progress.Task("timing", "timed", "iterations");

  private record Report(String text, String displayId, boolean update) {}

  /// Records output, so that a test can wait for it.
  private static final class Kept implements Outbox {
    final LinkedBlockingQueue<Report> reports = new LinkedBlockingQueue<>();

    @Override
    public void publish(MimeBundle bundle) {}

    @Override
    public void display(MimeBundle bundle, String displayId) {
      reports.add(new Report(bundle.text(), displayId, false));
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {
      reports.add(new Report(bundle.text(), displayId, true));
    }
  }

  private final Kept outbox = new Kept();

  @Test
  void longWorkIsCountedInOnePlaceAndEndsInOneLine() throws InterruptedException {
    Report first;
    try (var progress = Progress.of(TASK, 100, outbox, true)) {
      progress.done(25);
      first = outbox.reports.take();
      progress.done(100);
    }
    assertThat(first.text()).contains("timing 25/100 · iterations");
    assertThat(first.update()).isFalse();
    var last = outbox.reports.stream().toList().getLast();
    assertThat(last.text()).startsWith("timed 100 iterations in ");
    assertThat(last.update()).isTrue();
    assertThat(last.displayId()).isEqualTo(first.displayId()).isNotEmpty();
  }

  @Test
  void interruptedWorkPrintsItsLastStep() throws InterruptedException {
    try (var progress = Progress.of(TASK, 100, outbox, true)) {
      progress.done(25);
      var _ = outbox.reports.take();
    }
    assertThat(outbox.reports.stream().toList().getLast().text())
        .startsWith("timing ended after 25 of 100 iterations");
  }

  @Test
  void shortWorkAndOtherRanksSayNothing() throws InterruptedException {
    var silent = Progress.of(TASK, 100, outbox, false);
    silent.close();
    var quick = Progress.of(TASK, 100, outbox, true);
    quick.done(100);
    quick.close();
    // Reports that arrive after both belong to a third one, which began later.
    try (var _ = Progress.of(new Progress.Task("third", "", ""), 1, outbox, true)) {
      assertThat(outbox.reports.take().text()).contains("third");
    }
  }

  @Test
  void nestedWorkReportsNoProgressOfItsOwn() throws InterruptedException {
    try (var outer = Progress.of(TASK, 2, outbox, true);
        var inner = Progress.of(new Progress.Task("inner", "", ""), 5, outbox, true)) {
      outer.step("first");
      inner.done(3);
      var seen = List.of(outbox.reports.take(), outbox.reports.take());
      assertThat(seen)
          .allSatisfy(reports -> assertThat(reports.text()).contains("timing 0/2 · first"));
    }
    assertThat(outbox.reports).noneMatch(reports -> reports.text().contains("inner"));
  }
}
