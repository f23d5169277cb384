package braid.launcher.cli;

import braid.launcher.OutputFile;
import braid.launcher.bundle.Bundle;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.model.BraidException;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid bundle`.
@Command(
    name = "bundle",
    description =
        "Packs this Braid into one archive of at most 50 MiB, for a host without Java, Maven or"
            + " network.",
    mixinStandardHelpOptions = true,
    footer = {
      "  braid bundle",
      "  braid bundle -o /tmp/braid.tar.xz",
      "  there: tar xf braid.tar.xz && braid-bundle/bin/braid selftest",
    })
final class BundleCommand implements Callable<Integer> {
  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "The archive. Default: braid-bundle.tar.xz in the current directory.")
  private Path output = Path.of("braid-bundle.tar.xz");

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException, InterruptedException {
    requireProgram("tar", "tar");
    requireProgram("xz", "xz-utils");
    var home =
        Installation.home()
            .filter(directory -> Files.isDirectory(directory.resolve("launcher")))
            .orElseThrow(
                () ->
                    new BraidException(
                        "bundle needs a checkout of Braid but this one runs from %s; copy its archive instead"
                            .formatted(
                                Installation.home()
                                    .map(directory -> "the bundle " + directory)
                                    .orElse("bare jars"))));
    var file = OutputFile.writable("-o", output);
    var err = spec.commandLine().getErr();
    var bundle =
        new Bundle(
            home,
            classPath(),
            ManCommand.pages(),
            line -> {
              err.println("braid bundle: " + line);
              err.flush();
            });
    var summary = bundle.pack(file);
    var out = spec.commandLine().getOut();
    out.println("bundle  " + summary);
    out.flush();
    return 0;
  }

  private static void requireProgram(String program, String from) {
    if (Env.here().program(program).isEmpty()) {
      throw new BraidException(
          "bundle needs %s on PATH but it is missing; apt-get install %s".formatted(program, from));
    }
  }

  private static List<Path> classPath() {
    return Arrays.stream(System.getProperty("java.class.path", "").split(File.pathSeparator, -1))
        .map(Path::of)
        .filter(Files::exists)
        .toList();
  }
}
