package braid.internal.cuda;

import braid.internal.cuda.device.Launch;
import braid.internal.work.Work;
import braid.model.Stage;
import braid.natives.cuda.GpuCopy;
import braid.natives.kernels.CopyArguments;
import braid.natives.kernels.Handshake;
import braid.natives.kernels.Kernels;
import braid.natives.kernels.ReduceArguments;
import java.util.Optional;

/// Work that one kernel does between signals.
interface SmallWork {
  Work work();

  Stage stage();

  /// Number of bytes that it moves.
  long bytes();

  /// Returns the launch with the signals.
  Launch launch(Handshake signals);

  /// Returns this work and the next as the work of one kernel; empty if they need two.
  default Optional<SmallWork> with(SmallWork next) {
    return Optional.empty();
  }

  /// Independent copies.
  record Copies(Work work, Stage stage, Kernels kernels, CopyArguments arguments)
      implements SmallWork {
    @Override
    public long bytes() {
      return arguments.copies().stream().mapToLong(GpuCopy::bytes).sum();
    }

    @Override
    public Launch launch(Handshake signals) {
      return stream -> kernels.copyAll(stream, arguments, signals);
    }
  }

  /// A sum, which the same kernel may pass on.
  record Sum(Work work, Kernels kernels, ReduceArguments arguments, long bytes)
      implements SmallWork {
    @Override
    public Stage stage() {
      return Stage.REDUCE;
    }

    @Override
    public Launch launch(Handshake signals) {
      return stream -> kernels.reduce(stream, arguments, signals);
    }

    @Override
    public Optional<SmallWork> with(SmallWork next) {
      return next instanceof Copies copies
          ? arguments
              .with(copies.arguments().copies())
              .map(both -> new Sum(work, kernels, both, bytes + copies.bytes()))
          : Optional.empty();
    }
  }
}
