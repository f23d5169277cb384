package braid.internal.pipeline;

import braid.internal.backend.Backend;
import braid.internal.backend.Channels;
import braid.internal.backend.Channels.Channel;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.internal.rank.Closing;
import braid.internal.resource.Rendezvous;
import braid.model.BraidException;
import braid.model.Transport;
import java.util.ArrayDeque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SortedSet;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The libraries that run a plan's collectives, and its messages between hosts.
///
/// A library connects ranks and registers memory in its first calls, on the caller's thread and
/// without a time limit. So the ranks meet before the first iteration of each epoch, and only that
/// iteration makes such calls. They do nothing that a graph can record, so a graph is recorded
/// after it.
final class PlanLibraries implements AutoCloseable {
  private final String subject;
  private final Supplier<Rendezvous> rendezvous;
  private final Map<Transport, LibraryCollectives> libraries = new EnumMap<>(Transport.class);
  private @Nullable Channels channels;
  private State state = State.NEW;

  private enum State {
    /// No call was made in this epoch.
    NEW,
    /// The first iteration was enqueued.
    CONNECTING,
    CONNECTED
  }

  /// Sets up the libraries on all ranks together. If one is missing on a rank, this fails on all.
  ///
  /// @param subject name of the plan, the same on all ranks
  /// @param crossed channels between hosts, of all ranks
  PlanLibraries(
      String subject,
      Set<Transport> transports,
      SortedSet<Channel> crossed,
      Backend backend,
      Supplier<Rendezvous> rendezvous) {
    this.subject = subject;
    this.rendezvous = rendezvous;
    try {
      for (var transport : transports) {
        checkMissing(transport, backend);
        libraries.put(transport, backend.library(transport, rendezvous));
      }
      if (!crossed.isEmpty()) {
        checkMissing(Transport.NCCL_KERNELS, backend);
        channels = backend.channels(crossed, rendezvous);
      }
    } catch (RuntimeException | Error e) {
      Closing.after(e, this);
      throw e;
    }
  }

  private void checkMissing(Transport transport, Backend backend) {
    var reasons =
        rendezvous
            .get()
            .exchange(
                "set up %s for %s".formatted(transport, subject),
                backend.missing(transport).orElse(""));
    for (int rank = 0; rank < reasons.size(); rank++) {
      if (!reasons.get(rank).isEmpty()) {
        throw new BraidException("%s: rank %d: %s".formatted(subject, rank, reasons.get(rank)));
      }
    }
  }

  /// Returns the messages between hosts.
  Channels channels() {
    return Objects.requireNonNull(channels, () -> subject + " stays within a host");
  }

  LibraryCollectives of(Transport transport) {
    var library = libraries.get(transport);
    if (library == null) {
      throw new IllegalStateException("%s has no library %s".formatted(subject, transport));
    }
    return library;
  }

  /// Returns whether no rank has made a call in this epoch.
  boolean isNew() {
    return state == State.NEW && isUsed();
  }

  private boolean isUsed() {
    return channels != null || !libraries.isEmpty();
  }

  /// Lets the ranks meet before their first calls, and joins new communicators after a failure.
  ///
  /// @param requests of this rank, by transport
  void connect(Map<Transport, List<LibraryRequest>> requests) {
    if (channels != null) {
      channels.connect();
    }
    requests.forEach(
        (transport, all) ->
            all.forEach(
                request -> {
                  var _ = of(transport).precondition(request);
                }));
    var _ = rendezvous.get().exchange("connect the ranks of " + subject, "");
    state = State.CONNECTING;
  }

  /// Returns whether the iteration that was enqueued last was the first, which ends connecting.
  boolean endConnecting() {
    boolean first = state == State.CONNECTING;
    if (first) {
      state = State.CONNECTED;
    }
    return first;
  }

  /// Begins an epoch, in which the ranks connect again. Returns whether they have to.
  boolean disconnect() {
    state = State.NEW;
    return isUsed();
  }

  /// Ends calls in flight, since a stream on which a library waits for missing ranks does not end.
  void abort() {
    var all = new ArrayDeque<AutoCloseable>();
    libraries.values().forEach(each -> all.add(each::abort));
    if (channels != null) {
      all.add(channels::abort);
    }
    Closing.all(all::poll);
  }

  @Override
  public void close() {
    var all = new ArrayDeque<AutoCloseable>(libraries.values());
    libraries.clear();
    if (channels != null) {
      all.add(channels);
      channels = null;
    }
    Closing.all(all::poll);
  }
}
