package braid.launcher.cli.run;

import braid.internal.report.value.Caveats;
import braid.launcher.Counted;
import braid.launcher.cli.home.Installation;
import braid.launcher.machine.RankCount;
import braid.launcher.notebook.report.Facts;
import braid.launcher.session.SessionOptions;
import braid.model.Link;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;

/// Facts for a run's report: machine, backend, command.
public final class ReportFacts {
  private static final String PLAIN_WORD = "[\\w@%+=:,./-]+";

  private ReportFacts() {}

  /// @param arguments arguments of the `braid` command
  public static Facts of(List<String> arguments, SessionOptions options, RankCount machine) {
    var facts = new LinkedHashMap<String, String>();
    facts.put("ranks", Integer.toString(options.ranks()));
    facts.put("backend", options.backend().toString());
    if (options.backend().sharesGpus()) {
      facts.put(Caveats.COLUMN, Caveats.SHARED);
    }
    if (!options.backend().isCuda()) {
      facts.put("link", options.link().orElse(Link.DEFAULT + ", the default"));
    }
    facts.put("GPUs", machine.gpus().words());
    if (!machine.gpus().driver().isEmpty()) {
      facts.put("GPU driver", machine.gpus().driver());
    }
    facts.put(
        "Braid",
        Installation.version()
            + Installation.revision().map(revision -> ", revision " + revision).orElse(""));
    facts.put("Java", Runtime.version() + ", " + System.getProperty("java.vendor", ""));
    facts.put(
        "machine",
        "%s, %s, %s, %.1f GiB available"
            .formatted(
                host(),
                system(),
                Counted.of(machine.cores(), "core"),
                machine.availableMiB() / 1024.0));
    facts.put("directory", options.home().toString());
    return new Facts(Instant.now(), command(arguments), facts);
  }

  private static String system() {
    return String.join(
        " ",
        System.getProperty("os.name", ""),
        System.getProperty("os.version", ""),
        System.getProperty("os.arch", ""));
  }

  private static String host() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      return "a host without a name";
    }
  }

  private static String command(List<String> arguments) {
    return "braid "
        + arguments.stream().map(ReportFacts::shellWord).collect(Collectors.joining(" "));
  }

  private static String shellWord(String word) {
    return word.matches(PLAIN_WORD) ? word : "'" + word.replace("'", "'\\''") + "'";
  }
}
