package braid.bench;

import java.util.function.IntFunction;

/// A workload's inputs on a group, and what builds its forms on them.
interface OpenWorkload extends AutoCloseable {
  /// A form that is ready to run.
  ///
  /// @param timing runs iterations and returns the nanoseconds of each on this rank
  record BuiltForm(IntFunction<long[]> timing, Runnable closing) implements AutoCloseable {
    @Override
    public void close() {
      closing.run();
    }
  }

  /// Builds a form, on all ranks together.
  ///
  /// @throws braid.model.BraidException on every rank, if the group cannot run the form
  BuiltForm build(Form form);

  @Override
  void close();
}
