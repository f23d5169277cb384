package braid.launcher.kernel;

import braid.launcher.ExitCode;
import braid.launcher.InterruptSignal;
import braid.launcher.experiment.Experiment;
import braid.launcher.kernel.channels.ConnectionFile;
import braid.launcher.kernel.channels.Registration;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// A kernel process, which runs until a client ends it or Jupyter has ended.
public final class KernelProcess {
  private KernelProcess() {}

  /// Answers clients until the kernel has ended; returns the exit code of the process. The caller
  /// must exit: threads of user code may still run.
  ///
  /// @param options options of the ranks, evaluated when the ranks start. The first cell reports
  ///   invalid ones, because a notebook shows nothing of a kernel that dies early
  /// @param experiment manifest of a session, created at the first measurement
  /// @param jupyter the process that started the kernel; the kernel ends with it
  /// @throws BraidException if the connection file is unusable
  public static ExitCode serve(
      String version,
      Path connectionFile,
      Supplier<SessionOptions> options,
      Function<SessionOptions, Experiment> experiment,
      Optional<ProcessHandle> jupyter)
      throws IOException {
    var file = ConnectionFile.read(connectionFile);
    if (file.registration().isEmpty()) {
      try (var kernel = kernel(version, file, file.sockets(), options, experiment)) {
        return serve(kernel, jupyter);
      }
    }
    try (var registration = Registration.connect(file.registration().get())) {
      var sockets = file.socketsAt(registration.ip());
      try (var kernel = kernel(version, file, sockets, options, experiment)) {
        registration.announce(file.kernelId(), sockets, kernel.ports());
        return serve(kernel, jupyter);
      }
    }
  }

  private static FrontKernel kernel(
      String version,
      ConnectionFile file,
      KernelConnectionProperties sockets,
      Supplier<SessionOptions> options,
      Function<SessionOptions, Experiment> experiment) {
    return new FrontKernel(
        version,
        sockets,
        file.keys(),
        () -> backend(options),
        () -> start(options.get(), experiment));
  }

  private static ExitCode serve(FrontKernel kernel, Optional<ProcessHandle> jupyter)
      throws IOException {
    try {
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
      return ""; // the first cell reports invalid options
    }
  }
}
