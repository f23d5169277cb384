package braid.internal.collective;

import braid.internal.backend.Event;
import braid.internal.backend.Executable;
import braid.internal.backend.Stream;
import braid.internal.run.Link;
import braid.internal.work.Work;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// A collective that a chain launches. It runs on the streams of all collectives by the same
/// transport, behind those launched before.
final class LaunchedCollective implements Link {
  private final CollectiveEngine engine;
  private final CollectiveCall call;
  private final Supplier<CollectiveEngine.Prepared> preparation;
  private final Supplier<String> description;
  private int iteration;

  /// @param preparation makes the entry of the engine's cache
  /// @param description for messages
  LaunchedCollective(
      CollectiveEngine engine,
      CollectiveCall call,
      Supplier<CollectiveEngine.Prepared> preparation,
      Supplier<String> description) {
    this.engine = engine;
    this.call = call;
    this.preparation = preparation;
    this.description = description;
  }

  @Override
  public List<Stream> streams() {
    return engine.streams(call.route());
  }

  @Override
  public Stream first() {
    return streams().getFirst();
  }

  @Override
  public boolean turn(int ofIteration) {
    iteration = ofIteration;
    engine.turn(call.route(), description, ofIteration);
    return false;
  }

  @Override
  public void follow(Work work, Event end, Stream stream) {
    for (var own : streams()) {
      if (!own.equals(stream)) {
        own.await(work, end);
      }
    }
  }

  @Override
  public void launch() {
    engine.launch(call, preparation, description, iteration);
  }

  /// Does nothing: [#launch] has joined the streams, which other collectives use too.
  @Override
  public void join() {}

  /// Half of what pipelines have: several collectives of an iteration share their streams.
  @Override
  public int maxInFlight() {
    return Executable.MAX_IN_FLIGHT / 2;
  }

  @Override
  public Optional<String> waitingFor() {
    return streams().stream().flatMap(stream -> stream.waitingFor().stream()).findFirst();
  }

  /// Streams turn once per collective, so only the end of all of them is known.
  @Override
  public void settled(int inFlight) {
    if (inFlight == 0) {
      streams().forEach(stream -> stream.settled(0));
    }
  }

  @Override
  public void synchronize(Supplier<String> label) {
    streams().forEach(stream -> stream.synchronize(label));
  }

  /// Does nothing: the engine restarts its count itself, for all collectives.
  @Override
  public void beginEpoch() {}

  @Override
  public void spoil(Throwable cause) {
    engine.fail(cause);
  }

  @Override
  public void quiesce() {
    engine.quiesce();
  }

  @Override
  public boolean waitsInLibrary() {
    return call.route().way().library().isPresent();
  }
}
