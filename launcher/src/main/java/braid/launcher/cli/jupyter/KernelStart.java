package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.kernel.KernelMain;
import braid.launcher.session.RankCount;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// `braid kernel start`: what a kernelspec calls. It decides the rank count; the kernel does the
/// rest, and ends the JVM.
@Command(
    name = "start",
    description = "Starts a kernel; Jupyter calls it, people do not.",
    mixinStandardHelpOptions = true)
final class KernelStart implements Callable<Integer> {
  @Parameters(paramLabel = "CONNECTION_FILE", description = "What Jupyter writes.")
  private Path connectionFile = Path.of("");

  @Mixin private RankOptions ranks = new RankOptions();

  @Override
  public Integer call() {
    var session = ranks.ofKernel(Env.here(), RankCount.here());
    var arguments = new ArrayList<>(List.of(connectionFile.toString()));
    arguments.addAll(List.of("-n", Integer.toString(session.ranks())));
    arguments.addAll(List.of("--backend", session.backend()));
    session.link().ifPresent(link -> arguments.addAll(List.of("--link", link)));
    KernelMain.main(arguments.toArray(String[]::new));
    return 0;
  }
}
