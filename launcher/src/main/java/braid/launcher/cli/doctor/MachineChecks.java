package braid.launcher.cli.doctor;

import braid.internal.report.chart.ChartImage;
import braid.internal.shared.SharedFileSweep;
import braid.launcher.cli.home.Env;
import braid.launcher.machine.BackendChoice;
import braid.launcher.machine.RankCount;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Link;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;

/// Checks of JDK, cores, memory and other resources of ranks.
final class MachineChecks {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  /// Below this the smallest notebook does not fit.
  private static final long SHARED_MEMORY_NEEDED_MIB = 64;

  private MachineChecks() {}

  static List<Check> all(Env env, RankCount machine) {
    return List.of(
        jdk(),
        cores(machine),
        memory(machine),
        ranks(machine),
        backend(env, machine),
        sharedMemory(),
        link(env),
        charts());
  }

  private static Check jdk() {
    var java = Runtime.version() + ", " + System.getProperty("java.home");
    return ToolProvider.getSystemJavaCompiler() != null
        ? Check.ok("jdk", "JDK", java)
        : Check.missing(
            "jdk", "JDK", java + " has no compiler", "install a JDK 25, not only its runtime");
  }

  private static Check cores(RankCount machine) {
    return Check.ok("cores", "cores", Integer.toString(machine.cores()));
  }

  private static Check memory(RankCount machine) {
    var value = mib(machine.availableMiB()) + " available";
    return machine.availableMiB() >= RankCount.MIB_PER_RANK
        ? Check.ok("memory", "memory", value)
        : Check.missing(
            "memory", "memory", value, "free " + RankCount.MIB_PER_RANK + " MiB for each rank");
  }

  private static Check ranks(RankCount machine) {
    return Check.ok(
        "ranks",
        "ranks",
        "%d by default, at most %d".formatted(machine.byDefault(BackendKind.AUTO), machine.most()));
  }

  /// Check of the default backend.
  static Check backend(Env env, RankCount machine) {
    try {
      return Check.ok("backend", "backend", choice(env, machine).toString());
    } catch (BraidException e) {
      var set =
          Stream.of("BRAID_BACKEND", braid.internal.rank.Env.SHARE_GPUS)
              .filter(env.variables()::containsKey)
              .map(name -> name + "=" + env.variables().get(name))
              .collect(Collectors.joining(" and "));
      return Check.missing("backend", "backend", String.valueOf(e.getMessage()), "unset " + set);
    }
  }

  /// @throws BraidException if the environment names an unavailable backend
  static BackendChoice choice(Env env, RankCount machine) {
    var requested =
        env.backend()
            .map(name -> BackendKind.parse(name, "BRAID_BACKEND"))
            .orElse(BackendKind.AUTO);
    return BackendChoice.of(
        requested, "BRAID_BACKEND", machine.byDefault(requested), machine.gpus(), env.sharing());
  }

  private static Check charts() {
    return ChartImage.noFonts()
        .map(reason -> Check.absent("charts", "charts", reason))
        .orElseGet(() -> Check.ok("charts", "charts", "fonts are available"));
  }

  private static Check sharedMemory() {
    var id = "shared_memory";
    var title = SHARED_MEMORY.toString();
    var swept = SharedFileSweep.ofKilledSessions();
    try {
      var store = Files.getFileStore(SHARED_MEMORY);
      long freeMiB = store.getUsableSpace() >> 20;
      var value =
          mib(freeMiB)
              + " free of "
              + mib(store.getTotalSpace() >> 20)
              + swept.line().map(line -> "; " + line).orElse("");
      if (!Files.isWritable(SHARED_MEMORY)) {
        return Check.missing(id, title, "cannot be written", "chmod 1777 " + SHARED_MEMORY);
      }
      return freeMiB >= SHARED_MEMORY_NEEDED_MIB
          ? Check.ok(id, title, value)
          : Check.missing(
              id,
              title,
              value + ", less than " + SHARED_MEMORY_NEEDED_MIB + " MiB",
              "free some, or give a container more: docker run --shm-size 1g");
    } catch (IOException e) {
      return Check.missing(
          id, title, "is missing (" + e + ")", "mount it: mount -t tmpfs tmpfs " + SHARED_MEMORY);
    }
  }

  private static Check link(Env env) {
    var byDefault = "%s by default, on the host backend".formatted(Link.DEFAULT);
    if (env.link().isEmpty()) {
      return Check.ok("link", "link", byDefault);
    }
    try {
      return Check.ok("link", "link", Link.parse(env.link().get()) + ", from BRAID_LINK");
    } catch (BraidException e) {
      return Check.missing("link", "link", "BRAID_LINK: " + e.getMessage(), "unset BRAID_LINK");
    }
  }

  static String mib(long mib) {
    return mib < 1024 ? mib + " MiB" : String.format(Locale.ROOT, "%.1f GiB", mib / 1024.0);
  }
}
