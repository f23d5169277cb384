package braid.internal.backend;

import java.util.ArrayList;
import java.util.List;

/// The host's: the tasks and marks in the order they were laid out.
final class HostReplay implements Replay {
  private final List<Runnable> entries = new ArrayList<>();
  private final List<Event.OfHost> events = new ArrayList<>();

  void add(Runnable entry) {
    entries.add(entry);
  }

  void add(Event.OfHost event) {
    events.add(event);
  }

  @Override
  public void close() {}

  @Override
  public void launch() {
    // All first: a stream may wait for a mark that is laid out after the wait.
    events.forEach(Event.OfHost::renew);
    entries.forEach(Runnable::run);
  }
}
