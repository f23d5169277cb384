package braid;

/// A problem and a way to solve it, ready to run as often as wanted.
@SuppressWarnings("DoNotCallSuggester")
public final class Pipeline implements AutoCloseable {
  private Pipeline() {}

  public static Builder on(ProcessGroup group) {
    throw new UnsupportedOperationException();
  }

  /// Collects what a pipeline is made of.
  @SuppressWarnings("DoNotCallSuggester")
  public static final class Builder {
    private Builder() {}

    public Builder gemm(GemmSpec spec) {
      throw new UnsupportedOperationException();
    }

    public Builder overlap(Overlap how) {
      throw new UnsupportedOperationException();
    }

    /// Every rank of the group builds together.
    public Pipeline build() {
      throw new UnsupportedOperationException();
    }
  }

  public ProcessGroup group() {
    throw new UnsupportedOperationException();
  }

  public GemmSpec spec() {
    throw new UnsupportedOperationException();
  }

  public Overlap overlap() {
    throw new UnsupportedOperationException();
  }

  /// One iteration, to its end on this rank.
  public void run() {}

  /// Exact where the inputs allow it, else within the type's default tolerance.
  public void verify() {}

  public void verify(double atol, double rtol) {}

  /// Runs that often and says what this rank did, span by span.
  public Profile profile(int iterations) {
    throw new UnsupportedOperationException();
  }

  /// Runs that often without recording spans: nanoseconds of each iteration on this rank.
  public long[] time(int iterations) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void close() {}
}
