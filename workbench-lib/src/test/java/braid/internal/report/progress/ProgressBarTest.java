package braid.internal.report.progress;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ProgressBarTest {
  private final AtomicLong now = new AtomicLong();
  private final ArrayList<MimeBundle> shown = new ArrayList<>();
  private final ProgressBar bar = new ProgressBar("tuning", 100, "building", now::get, shown::add);

  @Test
  void aBarIsDrawnNoFasterThanAnEyeFollows() {
    for (int step = 0; step < 100; step++) {
      bar.step("splits=" + step);
      now.addAndGet(10_000_000);
    }
    bar.finish("done");

    assertThat(shown).hasSizeBetween(9, 12);
    assertThat(shown.getFirst().text()).contains("tuning 0/100 · building · 0.0 s");
    assertThat(shown.getLast().text()).contains("tuning 100/100 · done · 1.0 s");
    assertThat(shown.getLast().data().get(MimeBundle.HTML)).contains("max=\"100\" value=\"100\"");
  }

  @Test
  void theBarEstimatesTheRemainingTime() {
    now.addAndGet(500_000_000L);
    bar.step("a");
    now.addAndGet(1_000_000_000L);
    bar.step("b <c>");

    assertThat(shown.getLast().text()).contains("1/100 · b <c> · 1.5 s, about 99 s left");
    assertThat(shown.getLast().data().get(MimeBundle.HTML)).contains("b &lt;c&gt;");
  }

  @Test
  void aWarningIsShownUntilTheEnd() {
    bar.warn("load 15");
    now.addAndGet(1_000_000_000L);
    bar.step("a");
    assertThat(shown.getLast().text()).contains("0/100 · a · load 15 · 1.0 s");
    bar.finish("done");
    assertThat(shown.getLast().text()).contains("100/100 · done · 1.0 s");
  }

  @Test
  void theEstimateLeavesOutStepsOfAnotherPace() {
    bar.pacedAfter(1);
    bar.step("verifying");
    now.addAndGet(20_000_000_000L);
    bar.step("a");
    assertThat(shown.getLast().text()).endsWith("1/100 · a · 20.0 s");
    now.addAndGet(1_000_000_000L);
    bar.step("b");
    assertThat(shown.getLast().text()).endsWith("2/100 · b · 21.0 s, about 98 s left");
  }
}
