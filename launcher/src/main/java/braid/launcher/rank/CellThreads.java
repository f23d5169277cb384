package braid.launcher.rank;

import com.sun.management.HotSpotDiagnosticMXBean;
import com.sun.management.HotSpotDiagnosticMXBean.ThreadDumpFormat;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/// Finds threads started by cells that may still call the library: those with code of a cell or of
/// the library on their stack, and those that wait for a scheduled task. They include virtual
/// threads, which only a thread dump lists. Idle threads of a pool do not count.
public final class CellThreads {
  private static final String FOLDER = "braid-threads-";
  private static final String FILE = "threads";

  /// Id of no thread.
  static final long NO_THREAD = 0;

  /// Name of a folder, with the process that created it.
  private static final Pattern FOLDER_NAME = Pattern.compile(FOLDER + "(\\d+)-\\d+");

  /// Stack frame: ` at java.base/java.lang.Thread.run(Thread.java:1474)`.
  private static final Pattern FRAME =
      Pattern.compile("\\s+at (?:[^/(]+/)?([\\w.$]+)\\.[^.(]+\\(.*");

  /// Timed wait: `#28 "Timer-0" TIMED_WAITING 2026-11-22T02:20:18Z`.
  private static final Pattern TIMED = Pattern.compile("#\\d+ \".*\".* TIMED_WAITING .*");

  /// Thread of the library, which runs no code of a cell.
  private static final Pattern OWN = Pattern.compile("#\\d+ \"braid-.*");

  /// Classes whose threads wait for scheduled tasks.
  private static final List<String> SCHEDULES =
      List.of(
          "java.util.TimerThread",
          "java.util.concurrent.DelayScheduler",
          "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue");

  private CellThreads() {}

  /// Returns true if there is such a thread, or if threads cannot be listed.
  static boolean any(Predicate<String> isOfCell) {
    return any(isOfCell, NO_THREAD);
  }

  /// Returns true if there is another such thread, or if threads cannot be listed.
  static boolean anyOther(Predicate<String> isOfCell, Thread thread) {
    return any(isOfCell, thread.threadId());
  }

  private static boolean any(Predicate<String> isOfCell, long except) {
    try {
      return find(dump(), isOfCell, except);
    } catch (IOException e) {
      return true;
    }
  }

  /// @param except id of a thread that does not count
  static boolean find(List<String> dump, Predicate<String> isOfCell, long except) {
    boolean skipped = false;
    boolean own = false;
    boolean timed = false;
    for (var line : dump) {
      var frame = FRAME.matcher(line);
      if (skipped && !line.startsWith("#")) {
        continue;
      }
      if (frame.matches()) {
        var name = frame.group(1);
        boolean waits = timed && SCHEDULES.contains(name);
        if (isOfCell.test(name) || (!own && (isOfLibrary(name) || waits))) {
          return true;
        }
      } else if (line.startsWith("#")) {
        skipped = line.startsWith("#" + except + " ");
        own = OWN.matcher(line).matches();
        timed = TIMED.matcher(line).matches();
      }
    }
    return false;
  }

  private static boolean isOfLibrary(String name) {
    return name.startsWith("braid.") && !name.startsWith("braid.launcher.");
  }

  private static List<String> dump() throws IOException {
    var folder = Files.createTempDirectory(FOLDER + ProcessHandle.current().pid() + "-");
    var file = folder.resolve(FILE);
    try {
      ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
          .dumpThreads(file.toString(), ThreadDumpFormat.TEXT_PLAIN);
      return Files.readAllLines(file);
    } finally {
      Files.deleteIfExists(file);
      Files.delete(folder);
    }
  }

  /// Removes dumps of processes that were killed while they wrote one.
  public static void sweep() {
    try (var folders = Files.list(Path.of(System.getProperty("java.io.tmpdir", "/tmp")))) {
      for (var folder : folders.filter(CellThreads::isLeft).toList()) {
        Files.deleteIfExists(folder.resolve(FILE));
        Files.deleteIfExists(folder);
      }
    } catch (IOException | UncheckedIOException e) {
      // Another user's, or just removed by another session.
    }
  }

  private static boolean isLeft(Path folder) {
    var name = FOLDER_NAME.matcher(folder.getFileName().toString());
    return name.matches() && ProcessHandle.of(Long.parseLong(name.group(1))).isEmpty();
  }
}
