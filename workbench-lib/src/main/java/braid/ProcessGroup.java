package braid;

import java.util.List;

/// Ranks that work together. Every member calls the same things in the same order.
@SuppressWarnings("DoNotCallSuggester")
public final class ProcessGroup implements AutoCloseable {
  private ProcessGroup() {}

  /// All ranks.
  public static ProcessGroup world() {
    throw new UnsupportedOperationException();
  }

  /// The group of that name with those ranks of this group. Asked for twice it is the same group.
  public ProcessGroup subset(String name, int... ranks) {
    throw new UnsupportedOperationException();
  }

  public String name() {
    throw new UnsupportedOperationException();
  }

  public int rank() {
    throw new UnsupportedOperationException();
  }

  public int size() {
    throw new UnsupportedOperationException();
  }

  public Place place() {
    throw new UnsupportedOperationException();
  }

  /// The members' ranks in the world, by their rank in this group.
  public List<Integer> members() {
    throw new UnsupportedOperationException();
  }

  public void barrier() {}

  public byte[] broadcast(byte[] value, int root) {
    throw new UnsupportedOperationException();
  }

  public String broadcast(String value, int root) {
    throw new UnsupportedOperationException();
  }

  public double broadcast(double value, int root) {
    throw new UnsupportedOperationException();
  }

  public long broadcast(long value, int root) {
    throw new UnsupportedOperationException();
  }

  /// Every member's value, by rank, on every member.
  public List<byte[]> gather(byte[] value) {
    throw new UnsupportedOperationException();
  }

  public List<String> gather(String value) {
    throw new UnsupportedOperationException();
  }

  public double[] gather(double value) {
    throw new UnsupportedOperationException();
  }

  public long[] gather(long value) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void close() {}
}
