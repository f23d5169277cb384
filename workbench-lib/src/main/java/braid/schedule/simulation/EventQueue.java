package braid.schedule.simulation;

import java.util.Arrays;

/// Future events in the order of time; events at the same time in the order in which they were
/// added.
final class EventQueue {
  private static final int FIRST_ROOM = 1024;

  private long[] nanos = new long[FIRST_ROOM];
  private long[] orders = new long[FIRST_ROOM];
  private int[] tags = new int[FIRST_ROOM];
  private Target[] targets = new Target[FIRST_ROOM];
  private int size;
  private long added;

  /// The receiver of events.
  interface Target {
    /// @param tag the tag that the event was added with
    void at(long nanos, int tag);
  }

  void add(long at, Target target, int tag) {
    if (size == nanos.length) {
      int room = 2 * size;
      nanos = Arrays.copyOf(nanos, room);
      orders = Arrays.copyOf(orders, room);
      tags = Arrays.copyOf(tags, room);
      targets = Arrays.copyOf(targets, room);
    }
    int place = size++;
    long order = added++;
    while (place > 0) {
      int parent = (place - 1) / 2;
      if (nanos[parent] <= at) {
        break;
      }
      move(parent, place);
      place = parent;
    }
    put(place, at, order, target, tag);
  }

  boolean isEmpty() {
    return size == 0;
  }

  /// Removes the next event and runs it.
  void next() {
    long at = nanos[0];
    int tag = tags[0];
    var target = targets[0];
    size--;
    long lastAt = nanos[size];
    long lastOrder = orders[size];
    int lastTag = tags[size];
    var last = targets[size];
    int place = 0;
    while (true) {
      int child = 2 * place + 1;
      if (child >= size) {
        break;
      }
      if (child + 1 < size
          && isBefore(nanos[child + 1], orders[child + 1], nanos[child], orders[child])) {
        child++;
      }
      if (!isBefore(nanos[child], orders[child], lastAt, lastOrder)) {
        break;
      }
      move(child, place);
      place = child;
    }
    put(place, lastAt, lastOrder, last, lastTag);
    target.at(at, tag);
  }

  private static boolean isBefore(long at, long order, long otherAt, long otherOrder) {
    return at < otherAt || (at == otherAt && order < otherOrder);
  }

  private void move(int from, int to) {
    put(to, nanos[from], orders[from], targets[from], tags[from]);
  }

  private void put(int place, long at, long order, Target target, int tag) {
    nanos[place] = at;
    orders[place] = order;
    targets[place] = target;
    tags[place] = tag;
  }
}
