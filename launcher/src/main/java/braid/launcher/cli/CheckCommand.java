package braid.launcher.cli;

import braid.launcher.cli.home.Installation;
import braid.model.BraidException;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/// A subcommand that checks or measures Braid itself. Its class is in the checks' jars, not in the
/// product's, so [Braid] finds it by [java.util.ServiceLoader].
public interface CheckCommand {
  /// A class of the jar of each module's checks, which need each other from top to bottom.
  Map<String, String> JARS =
      Map.of(
          "launcher", "braid/launcher/cli/SelfTestCommand.class",
          "workbench-lib", "braid/selftest/SelfTest.class",
          "native", "braid/natives/kernels/KernelChecks.class");

  /// Returns true if it runs cells, so that a signal ends it only after its ranks.
  default boolean runsCells() {
    return false;
  }

  /// Adds the commands of the checks. Where a jar is missing, a command of each name refuses.
  static void addTo(CommandLine braid) {
    var missing =
        List.of("launcher", "workbench-lib", "native").stream()
            .filter(module -> ClassLoader.getSystemResource(JARS.get(module)) == null)
            .map(module -> "braid-%s-%s-checks.jar".formatted(module, Installation.version()))
            .findFirst();
    if (missing.isEmpty()) {
      ServiceLoader.load(CheckCommand.class).forEach(braid::addSubcommand);
      return;
    }
    for (var name : List.of("selftest", "soak", "bench")) {
      var spec = CommandSpec.wrapWithoutInspection(new Refusal(name, missing.get()));
      spec.usageMessage().description("Needs %s, which is not installed.".formatted(missing.get()));
      // Arguments of the absent command must not cause another error.
      spec.parser().unmatchedArgumentsAllowed(true);
      braid.addSubcommand(name, spec);
    }
  }

  /// The command of an absent jar.
  record Refusal(String name, String jar) implements Callable<Integer> {
    @Override
    public Integer call() {
      throw new BraidException(
          "%s needs %s, which is not installed; build it with mvn -DskipTests package in a checkout and put it beside the other jars of Braid"
              .formatted(name, jar));
    }
  }
}
