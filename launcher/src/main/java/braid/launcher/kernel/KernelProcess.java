package braid.launcher.kernel;

import braid.launcher.ExitCode;
import braid.launcher.InterruptSignal;
import braid.launcher.experiment.Experiment;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import com.google.gson.JsonParseException;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// A process that is a kernel, until a client ends it or Jupyter is gone.
public final class KernelProcess {
  private KernelProcess() {}

  /// Answers clients until the kernel has ended; what the process should then exit with. The caller
  /// must exit: threads of user code may still run.
  ///
  /// @param options what the ranks are started with. They are asked for when the ranks are, and
  ///   what is wrong with them is told by the first cell: of a kernel that dies early, a notebook
  ///   shows nothing
  /// @param experiment the manifest of a session, which begins with what is measured first
  /// @param jupyter the process that started the kernel; a kernel that nobody can end any more ends
  ///   with it
  /// @throws BraidException where the connection file cannot be used
  public static ExitCode serve(
      String version,
      Path connectionFile,
      Supplier<SessionOptions> options,
      Function<SessionOptions, Experiment> experiment,
      Optional<ProcessHandle> jupyter)
      throws IOException {
    try (var kernel =
        new FrontKernel(
            version,
            connection(connectionFile),
            () -> backend(options),
            () -> start(options.get(), experiment))) {
      InterruptSignal.handle(kernel::interrupt);
      jupyter.ifPresent(process -> kernel.endWith(process.onExit()));
      kernel.ended().join();
      return ExitCode.OK;
    } catch (CompletionException e) {
      throw new IOException("the kernel's sockets broke: " + e.getCause(), e);
    }
  }

  private static Session start(
      SessionOptions options, Function<SessionOptions, Experiment> experiment) {
    var session = Session.start(options);
    session.recordIn(experiment.apply(options));
    return session;
  }

  private static String backend(Supplier<SessionOptions> options) {
    try {
      return options.get().backend().toString();
    } catch (BraidException e) {
      return ""; // what is wrong with the options is told by the first cell
    }
  }

  private static KernelConnectionProperties connection(Path file) throws IOException {
    if (!Files.isRegularFile(file)) {
      throw new BraidException(
          "connection file must be a file Jupyter wrote but %s is none; start the kernel from Jupyter, or try braid run"
              .formatted(file));
    }
    try {
      var connection = KernelConnectionProperties.parse(Files.readString(file));
      if (connection == null
          || connection.getTransport() == null
          || connection.getIp() == null
          || connection.getKey() == null
          || connection.getSignatureScheme() == null) {
        throw new BraidException(
            "connection file must hold transport, ip, ports, key and signature_scheme but %s does not; start the kernel from Jupyter"
                .formatted(file));
      }
      return connection;
    } catch (JsonParseException | CharacterCodingException e) {
      throw new BraidException(
          "connection file must be JSON but %s is not; start the kernel from Jupyter"
              .formatted(file),
          e);
    }
  }
}
