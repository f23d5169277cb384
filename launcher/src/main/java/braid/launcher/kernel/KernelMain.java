package braid.launcher.kernel;

import braid.BraidException;
import braid.launcher.ExitCode;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import com.google.gson.JsonParseException;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// The kernel's process: what a kernelspec starts.
@Command(
    name = "kernel",
    description = "Answers Jupyter clients; kernelspecs start it, people do not.")
public final class KernelMain implements Callable<Integer> {
  @Parameters(
      paramLabel = "CONNECTION_FILE",
      description = "What Jupyter writes: ports, key and signature scheme.")
  private Path connectionFile = Path.of("");

  @Option(names = "-n", paramLabel = "RANKS", description = "Ranks to start.")
  private int ranks = 4;

  @Option(names = "--backend", description = "auto, host or cuda; default ${DEFAULT-VALUE}.")
  private String backend = "auto";

  @Option(names = "--link", description = "The host backend's link, for example 2GB/s,20us.")
  private Optional<String> link = Optional.empty();

  public static void main(String[] arguments) {
    var command =
        new CommandLine(new KernelMain()).setExecutionExceptionHandler(KernelMain::failed);
    // Explicitly: threads of the JVM or of user code must not keep an ended kernel alive.
    System.exit(command.execute(arguments));
  }

  @Override
  public Integer call() throws IOException {
    var options = new SessionOptions(ranks, backend, link, Path.of(""));
    try (var kernel = new FrontKernel(connection(connectionFile), () -> Session.start(options))) {
      InterruptSignal.handle(kernel::interrupt);
      kernel.shutdown().join();
      return ExitCode.OK.code();
    }
  }

  static KernelConnectionProperties connection(Path file) throws IOException {
    if (!Files.isRegularFile(file)) {
      throw new BraidException(
          "connection file must be a file Jupyter wrote but "
              + file
              + " is none; start the kernel"
              + " from Jupyter, or try `braid run`");
    }
    try {
      var connection = KernelConnectionProperties.parse(Files.readString(file));
      if (connection == null || connection.getTransport() == null || connection.getKey() == null) {
        throw new BraidException(
            "connection file must hold ports, transport and key but " + file + " does not");
      }
      return connection;
    } catch (JsonParseException | CharacterCodingException e) {
      throw new BraidException("connection file must be JSON but " + file + " is not", e);
    }
  }

  private static int failed(
      Exception failure, CommandLine command, CommandLine.ParseResult arguments) {
    var cause =
        failure instanceof CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    if (cause instanceof BraidException) {
      System.err.println("braid kernel: " + cause.getMessage());
      return ExitCode.USAGE.code();
    }
    System.err.print("braid kernel: " + ErrorContent.stackTrace(cause));
    return ExitCode.CELL_FAILED.code();
  }
}
