package braid.internal.host;

import braid.internal.backend.Executable;
import java.util.List;

/// Work of the host's streams, given piece by piece. The host has nothing to record; recorded work
/// differs in its signals alone, see [HostStream#alternate].
record HostExecutable(List<HostStream> streams, Runnable enqueue, boolean recorded)
    implements Executable {
  @Override
  public void launch() {
    streams.forEach(stream -> stream.alternate(recorded));
    try {
      enqueue.run();
    } finally {
      streams.forEach(stream -> stream.alternate(false));
    }
  }

  @Override
  public void close() {}
}
