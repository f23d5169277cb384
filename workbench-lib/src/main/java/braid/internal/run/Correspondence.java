package braid.internal.run;

import braid.internal.backend.Channels.Channel;
import braid.internal.backend.Stream;
import braid.internal.run.Crossing.Message;
import braid.internal.work.Matrix;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.DType;
import braid.schedule.Region;
import braid.schedule.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;

/// Enqueues this rank's side of the messages of a [Crossing].
///
/// @param matrix returns the memory of a region that this rank has an address of
/// @param raise enqueues a signal of this rank to itself
record Correspondence(
    int rank, Executor.Crossed crossed, Function<Region, Matrix> matrix, Raise raise) {
  /// Enqueues the raising of this rank's own word.
  @FunctionalInterface
  interface Raise {
    void on(Stream stream, Work work, Step.Signal signal);
  }

  /// Returns the messages of a step of this rank; there may be none.
  List<Runnable> sent(Step step, Stream stream, Work work) {
    var all = new ArrayList<Runnable>();
    for (var message : crossed.crossing().messages(rank, step)) {
      var channel = Crossing.channel(rank, step.lane(), message);
      switch (message) {
        case Message.Ask _, Message.Raise _ ->
            all.add(() -> crossed.channels().send(channel, MemorySegment.NULL, stream, work));
        case Message.Fetch fetch ->
            receive(
                channel,
                fetch.to().map(matrix).orElseGet(() -> fetched(channel, fetch.from())),
                stream,
                work,
                all);
        case Message.Deliver deliver ->
            send(channel, matrix.apply(deliver.from()), stream, work, all);
      }
    }
    return all;
  }

  /// Returns a part of a sum of this rank, which may have arrived in scratch memory.
  Matrix part(Step step, Region region) {
    return crossed.crossing().isFar(rank, region)
        ? fetched(new Channel(rank, step.lane().name(), region.rank()), region)
        : matrix.apply(region);
  }

  private Matrix fetched(Channel channel, Region region) {
    return packed(channel + " brings " + region, region.buffer().transposed(), shape(region));
  }

  /// Size of a region, without memory.
  private static Shape shape(Region region) {
    return new Shape(
        region.buffer().dtype(), Math.toIntExact(region.rows()), Math.toIntExact(region.columns()));
  }

  private record Shape(DType dtype, int rows, int columns) {
    static Shape of(Matrix matrix) {
      return new Shape(matrix.dtype(), matrix.rows(), matrix.columns());
    }

    long bytes() {
      return (long) rows * columns * dtype.bytes();
    }
  }

  private Matrix packed(String name, boolean transposed, Shape shape) {
    var segment = crossed.scratch().of(name, shape.bytes());
    return transposed
        ? Matrix.transposed(segment, shape.dtype(), shape.rows(), shape.columns())
        : Matrix.of(segment, shape.dtype(), shape.rows(), shape.columns());
  }

  /// Returns this rank's part in the steps of other hosts' ranks.
  List<Runnable> answered() {
    var all = new ArrayList<Runnable>();
    var schedule = crossed.crossing().schedule();
    for (int active = 0; active < schedule.ranks(); active++) {
      for (var step : schedule.steps(active)) {
        for (var message : crossed.crossing().messages(active, step)) {
          if (message.passive() == rank) {
            answer(active, step, message, all);
          }
        }
      }
    }
    return all;
  }

  private void answer(int active, Step step, Message message, List<Runnable> all) {
    var channel = Crossing.channel(active, step.lane(), message);
    var stream = Objects.requireNonNull(crossed.streams().get(channel));
    var work =
        new Work(
            step.chunk(),
            () -> "%s of rank %d".formatted(step.text(), active),
            () -> "for rank %d".formatted(active));
    switch (message) {
      case Message.Ask _ ->
          all.add(() -> crossed.channels().receive(channel, MemorySegment.NULL, stream, work));
      case Message.Raise raised -> {
        all.add(() -> crossed.channels().receive(channel, MemorySegment.NULL, stream, work));
        all.add(() -> raise.on(stream, work, raised.signal()));
      }
      case Message.Fetch fetch -> send(channel, matrix.apply(fetch.from()), stream, work, all);
      case Message.Deliver deliver ->
          receive(channel, matrix.apply(deliver.to()), stream, work, all);
    }
  }

  private void send(Channel channel, Matrix from, Stream stream, Work work, List<Runnable> all) {
    if (from.size() == 0) {
      return;
    }
    var piece = piece(from);
    if (!piece.equals(from)) {
      all.add(() -> stream.copyLocal(work, Transfer.of(from, piece)));
    }
    var bytes = piece.segment().asSlice(0, from.size());
    all.add(() -> crossed.channels().send(channel, bytes, stream, work));
  }

  private void receive(Channel channel, Matrix to, Stream stream, Work work, List<Runnable> all) {
    if (to.size() == 0) {
      return;
    }
    var piece = piece(to);
    var bytes = piece.segment().asSlice(0, to.size());
    all.add(() -> crossed.channels().receive(channel, bytes, stream, work));
    if (!piece.equals(to)) {
      all.add(() -> stream.copyLocal(work, Transfer.of(piece, to)));
    }
  }

  /// Returns a matrix itself if its numbers are in one piece, else scratch memory of its shape.
  private Matrix piece(Matrix matrix) {
    var stored = matrix.asStored();
    return stored.isContiguous()
        ? matrix
        : packed(
            "%d %d %d %d"
                .formatted(
                    matrix.segment().address(), matrix.rows(), matrix.columns(), matrix.stride()),
            matrix.transposed(),
            Shape.of(matrix));
  }
}
