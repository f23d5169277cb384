package braid.schedule.simulation;

import java.util.Arrays;

/// Operations of one rank's lanes in an iteration, stored compactly, because a large simulation has
/// millions.
final class Operations {
  static final byte COMPUTE = 0;
  static final byte COPY = 1;

  /// A copy that starts together with the previous one.
  static final byte COPY_TOO = 2;

  static final byte SIGNAL = 3;
  static final byte WAIT = 4;
  static final byte MARK = 5;
  static final byte AFTER = 6;

  final OfLane[] lanes;
  private int marks;
  private int calls;
  private long launchedNanos;

  public Operations(int lanes) {
    this.lanes = new OfLane[lanes];
    for (int lane = 0; lane < lanes; lane++) {
      this.lanes[lane] = new OfLane();
    }
  }

  /// The operations of one lane, in their order.
  static final class OfLane {
    byte[] kinds = {};

    /// Numbers of their steps.
    int[] steps = {};

    int[] chunks = {};

    /// The other rank, or the number of a mark.
    int[] others = {};

    /// The number of the work, or of a word.
    int[] subjects = {};

    /// Whether they are part of the same launch as the one before.
    boolean[] joined = {};

    /// Times at which the host thread has enqueued them, since it began the iteration.
    long[] launched = {};

    int count;

    private void add(
        byte kind, int step, int chunk, int other, int subject, boolean joins, long launchedNanos) {
      if (count == kinds.length) {
        room(Math.max(8, 2 * count));
      }
      kinds[count] = kind;
      steps[count] = step;
      chunks[count] = chunk;
      others[count] = other;
      subjects[count] = subject;
      joined[count] = joins;
      launched[count] = launchedNanos;
      count++;
    }

    private void room(int room) {
      kinds = Arrays.copyOf(kinds, room);
      steps = Arrays.copyOf(steps, room);
      chunks = Arrays.copyOf(chunks, room);
      others = Arrays.copyOf(others, room);
      subjects = Arrays.copyOf(subjects, room);
      joined = Arrays.copyOf(joined, room);
      launched = Arrays.copyOf(launched, room);
    }
  }

  /// Adds the operations of one step.
  public final class OfStep {
    private final int lane;
    private final int step;
    private final int chunk;
    private boolean joins;

    private OfStep(int lane, int step, int chunk) {
      this.lane = lane;
      this.step = step;
      this.chunk = chunk;
    }

    /// Lets the operations added from now on be part of the launch before them.
    public void join() {
      joins = true;
    }

    /// @param work number of the work
    public void compute(int work) {
      add(COMPUTE, 0, work);
    }

    /// @param with true if it starts together with the previous copy
    /// @param work number of the copied work
    public void copy(boolean with, int from, int to, int self, int work) {
      add(with ? COPY_TOO : COPY, from == self ? 2 * to + 1 : 2 * from, work);
    }

    public void signal(int to, int word) {
      add(SIGNAL, to, word);
    }

    public void await(int from, int word) {
      add(WAIT, from, word);
    }

    public void mark(int number) {
      marks = Math.max(marks, number + 1);
      add(MARK, number, 0);
    }

    public void after(int mark) {
      marks = Math.max(marks, mark + 1);
      add(AFTER, mark, 0);
    }

    private void add(byte kind, int other, int subject) {
      lanes[lane].add(kind, step, chunk, other, subject, joins, launchedNanos);
    }
  }

  /// Begins a step, which the host thread takes `launchNanos` to enqueue.
  public OfStep step(int lane, int number, int chunk, long launchNanos) {
    launchedNanos += launchNanos;
    return new OfStep(lane, number, chunk);
  }

  /// Ends the list and frees spare memory.
  public Operations done() {
    for (var lane : lanes) {
      lane.room(lane.count);
    }
    return this;
  }

  int marks() {
    return marks;
  }

  /// Returns the number of the next library call.
  int nextCall() {
    return calls++;
  }

  /// Returns the number of library calls.
  int calls() {
    return calls;
  }

  /// Returns the time of the host thread to enqueue an iteration.
  long launchedNanos() {
    return launchedNanos;
  }
}
