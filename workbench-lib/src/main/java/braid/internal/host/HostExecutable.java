package braid.internal.host;

import braid.internal.backend.Executable;
import java.util.List;

/// Work of the host's streams, enqueued anew at every launch. The host has no graphs; recorded work
/// differs only in the values of its signals, see [HostStream#alternate].
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
