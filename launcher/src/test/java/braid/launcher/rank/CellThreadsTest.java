package braid.launcher.rank;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Tests which threads of a dump may still take part in a joint operation of the ranks.
class CellThreadsTest {
  private static boolean find(String header, String... frames) {
    var dump = new ArrayList<String>();
    dump.add(header);
    for (var frame : frames) {
      dump.add("    at " + frame);
    }
    return CellThreads.find(dump, name -> name.toUpperCase(Locale.ROOT).startsWith("REPL."), 5);
  }

  @Test
  void dumpsOfProcessesThatHaveEndedAreRemoved() throws Exception {
    var process = new ProcessBuilder("true").start();
    assertThat(process.waitFor()).isZero();
    var left = Files.createTempDirectory("braid-threads-%d-".formatted(process.pid()));
    Files.writeString(left.resolve("threads"), "half a dump");
    var own = Files.createTempDirectory("braid-threads-" + ProcessHandle.current().pid() + "-");
    try {
      CellThreads.sweep();
      assertThat(left).doesNotExist();
      assertThat(own).exists();
    } finally {
      Files.delete(own);
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "#23 \"\" virtual WAITING 2026-11-22T02:20:18Z | REPL.$JShell$12.lambda$do_it$$0($JShell$12.java:5) | true",
        "#23 \"x\" RUNNABLE 2026-11-22T02:20:18Z | REPL.$JShell$12$Mine.run($JShell$12.java:5) | true",
        "#23 \"x\" RUNNABLE 2026-11-22T02:20:18Z | braid.ProcessGroup.barrier(ProcessGroup.java:5) | true",
        "#5 \"main\" RUNNABLE 2026-11-22T02:20:18Z | REPL.$JShell$12.do_it$($JShell$12.java:5) | false",
        "#3 \"main\" RUNNABLE 2026-11-22T02:20:18Z | braid.launcher.rank.RankMain.serve(RankMain.java:5) | false",
        "#9 \"braid-0-comm\" RUNNABLE 2026-11-22T02:20:18Z | braid.internal.host.WorkQueue.work(WorkQueue.java:5) | false",
        "#9 \"Timer-0\" TIMED_WAITING 2026-11-22T02:20:18Z | java.base/java.util.TimerThread.mainLoop(Timer.java:569) | true",
        "#9 \"Timer-0\" WAITING 2026-11-22T02:20:18Z | java.base/java.util.TimerThread.mainLoop(Timer.java:560) | false",
        "#9 \"braid-progress\" TIMED_WAITING 2026-11-22T02:20:18Z | java.base/java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.take(X.java:1) | false",
        "#9 \"pool-1-thread-1\" TIMED_WAITING 2026-11-22T02:20:18Z | java.base/java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.take(X.java:1) | true",
        "#9 \"pool-2-thread-1\" TIMED_WAITING 2026-11-22T02:20:18Z | java.base/java.util.concurrent.ThreadPoolExecutor.getTask(X.java:1) | false",
      })
  void aThreadCountsByItsCode(String header, String frame, boolean mayCome) {
    assertThat(find(header, "java.base/java.lang.Thread.run(Thread.java:1474)", frame))
        .isEqualTo(mayCome);
  }
}
