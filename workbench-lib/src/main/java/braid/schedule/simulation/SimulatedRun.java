package braid.schedule.simulation;

import braid.evidence.ProfileSet;
import braid.internal.report.value.Caveats;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Stage;
import braid.model.Transport;
import braid.model.Tuning;
import braid.schedule.Finish;
import braid.schedule.Flag;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Recode;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import braid.schedule.simulation.Simulation.LaneKind;
import braid.schedule.simulation.Simulation.Work;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// Converts a schedule to timed operations on a machine, simulates them, and returns the profiles.
/// Steps are planned rank by rank and not cached, so that each takes only a few bytes.
final class SimulatedRun {
  /// Most rounds of a barrier, each of which reaches twice as many ranks.
  private static final int ROUNDS = Integer.SIZE;

  private final Schedule schedule;
  private final Hardware machine;
  private final double launchShare;
  private final Map<Work, Integer> numbers = new HashMap<>();
  private final List<Work> work = new ArrayList<>();
  private final Map<String, Integer> firstWords = new HashMap<>();
  private int words;

  private SimulatedRun(Schedule schedule, Hardware machine) {
    this.schedule = schedule;
    this.machine = machine;
    this.launchShare = isReplayed(schedule) ? machine.costs().replayedShare() : 1;
    for (var flag : schedule.flags()) {
      firstWords.put(flag.name(), words);
      words += flag.words();
    }
  }

  /// Returns whether an iteration is recorded once and replayed, by its tuning or by itself.
  static boolean isReplayed(Schedule schedule) {
    return schedule.replayed()
        || (schedule.goal() instanceof Goal.Solution(var _, var tuning)
            && tuning.map(Tuning::replayed).orElse(false));
  }

  /// @param inFlight true if iterations are enqueued while earlier ones run
  static ProfileSet of(Schedule schedule, Hardware machine, int iterations, boolean inFlight) {
    if (iterations < 1) {
      throw new BraidException(
          "simulate needs 1 or more iterations but was given %d; try simulate(machine, 10)"
              .formatted(iterations));
    }
    return new SimulatedRun(schedule, machine).run(iterations, inFlight);
  }

  static long launchNanos(Schedule schedule, Hardware machine, int rank) {
    return new SimulatedRun(schedule, machine).operations(rank).launchedNanos();
  }

  private ProfileSet run(int iterations, boolean inFlight) {
    var lanes =
        schedule.lanes().stream()
            .map(lane -> new LaneKind(lane.name(), lane.yielding(), workers(lane)))
            .toList();
    var operations = new ArrayList<Operations>();
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      operations.add(operations(rank));
    }
    var results =
        new Simulation(
                machine,
                new Simulation.Input(
                    lanes, work, words + operations.getFirst().calls() * 2 * ROUNDS, operations),
                iterations,
                inFlight,
                this::halted)
            .run();
    operations.clear();
    var columns = configuration();
    var profiles = new ArrayList<Profile>();
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      var spans = results.get(rank).spans();
      spans.sort(Comparator.comparingLong(braid.model.Span::startNanos));
      profiles.add(
          new Profile(
              new Place(rank, schedule.ranks()),
              columns,
              results.get(rank).iterationNanos(),
              spans,
              0,
              new LinkedHashMap<>(),
              List.of(),
              results.get(rank).startNanos(),
              List.of(),
              Optional.empty(),
              host(rank)));
      spans.clear();
    }
    return ProfileSet.of(profiles);
  }

  private Optional<String> host(int rank) {
    return hosts() == 1 ? Optional.empty() : Optional.of("host " + rank / machine.ranksPerHost());
  }

  private int hosts() {
    return Math.ceilDiv(schedule.ranks(), machine.ranksPerHost());
  }

  /// Returns the number of units that copy on a lane. A kernel that waits for peers takes an eighth
  /// of them, and half of them if it adds; NCCL's kernels take 24 of 132 on a Hopper GPU, and its
  /// symmetric ones 5.
  private int workers(Lane lane) {
    int units = machine.compute().units();
    int share = lane.role() == Lane.Role.COMPUTE ? 2 : 8;
    return switch (lane.transport()) {
      case COPY_ENGINE, WORKERS, NCCL_COPY_ENGINE, NVSHMEM_PUTS -> lane.workers();
      case ONE_KERNEL -> Math.max(1, units / share);
      case NCCL_KERNELS -> Math.max(1, units * 24 / 132);
      case CUBLASMP -> lane.workers() > 0 ? lane.workers() : Math.max(1, units * 24 / 132);
      case NCCL_SYMMETRIC -> Math.max(1, units * 5 / 132);
    };
  }

  private SequencedMap<String, String> configuration() {
    var columns = new LinkedHashMap<String, String>();
    switch (schedule.goal()) {
      case Goal.Solution(var problem, var tuning) -> {
        columns.putAll(problem.columns());
        tuning.ifPresent(each -> columns.putAll(each.columns()));
      }
      case Goal.Collected collected -> columns.put("collective", collected.toString());
      case Goal.Unstated unstated -> columns.put("schedule", unstated.name());
    }
    columns.put("ranks", Integer.toString(schedule.ranks()));
    columns.put("backend", ProfileSet.SIMULATED);
    var links = machine.links();
    columns.put("link", links.inside().toString());
    if (hosts() > 1) {
      Caveats.putHosts(hosts(), columns);
      columns.put("link between hosts", links.between().toString());
    }
    columns.put("machine", machine.name());
    columns.put(
        "calibrated", machine.calibration().map(Calibration::toString).orElse("not calibrated"));
    return columns;
  }

  private BraidException halted(int rank, int lane, int step, String why) {
    return wrong(rank, schedule.stepsUncached(rank).get(step), step, why);
  }

  private static BraidException wrong(int rank, Step step, int number, String why) {
    return new BraidException("%s: %s".formatted(step.name(rank, number), why));
  }

  /// Returns the operations of one rank.
  private Operations operations(int rank) {
    var into = new Operations(schedule.lanes().size());
    int number = 0;
    var sums = new HashMap<Lane, Region>();
    for (var step : schedule.stepsUncached(rank)) {
      add(rank, number++, step, passesOn(step, sums), into);
    }
    return into.done();
  }

  /// Returns whether the kernel of the sum before a copy makes it too.
  ///
  /// @param sums sums that kernels may still pass on, by lane
  private static boolean passesOn(Step step, Map<Lane, Region> sums) {
    if (step.lane().transport() != Transport.ONE_KERNEL || step instanceof Signal) {
      return false;
    }
    var sum = sums.remove(step.lane());
    if (step instanceof Reduce reduce) {
      sums.put(step.lane(), reduce.output());
    }
    return step instanceof Copy copy
        && copy.moves().stream().allMatch(move -> move.from().equals(sum));
  }

  /// @param passesOn true if an earlier kernel makes the copy
  private void add(int rank, int number, Step step, boolean passesOn, Operations into) {
    int lane = schedule.lanes().indexOf(step.lane());
    if (lane < 0) {
      throw wrong(rank, step, number, "the schedule has no such lane; add it to its lanes");
    }
    var costs = machine.costs();
    boolean inOneKernel = step.lane().transport() == Transport.ONE_KERNEL;
    long launch =
        switch (step) {
          case Copy _ when passesOn -> 0;
          case Copy _ when inOneKernel -> costs.launchCompute();
          case Signal _, Wait _ when inOneKernel -> 0;
          case Copy copy -> copy.moves().size() * costs.launchCopy();
          case Gemm gemm ->
              (machine.compute().batched() ? 1 : gemm.tiles().size()) * costs.launchCompute();
          case Recode recode -> recode.moves().size() * costs.launchCompute();
          case Reduce _, Zero _, Attend _, AttendGradient _, Merge _ -> costs.launchCompute();
          case Prepare prepare -> converts(prepare) ? costs.launchCompute() : 0;
          case Signal _, Wait _ -> costs.launchSignal();
          case Mark _, After _ -> costs.launchMark();
          case LibraryCall _ -> costs.launchCompute();
        };
    var as = into.step(lane, number, step.chunk(), Math.round(launch * launchShare));
    if (passesOn) {
      as.join();
    }
    switch (step) {
      case Copy copy -> {
        boolean with = false;
        for (var move : copy.moves()) {
          if (move.isLocal()) {
            as.compute(memory(Stage.LOCAL, move.from().bytes(), machine.compute().copyBytes()));
          } else {
            requireOwn(rank, number, copy, move);
            as.copy(
                with && !machine.links().serial(),
                move.from().rank(),
                move.to().rank(),
                rank,
                number(new Work(Stage.COPY, 1, 0, move.from().bytes(), 0)));
            with = true;
          }
        }
      }
      case Recode recode ->
          as.compute(memory(Stage.LOCAL, recode.bytes(), machine.compute().reduceBytes()));
      case Gemm gemm -> as.compute(gemm(gemm));
      case Reduce reduce -> {
        read(reduce, rank, as);
        as.compute(reduce(reduce, rank));
      }
      case Attend attend -> as.compute(attend(attend));
      case AttendGradient gradient -> as.compute(gradient(gradient.block()));
      case Merge merge -> as.compute(merge(merge));
      case Zero zero ->
          as.compute(memory(Stage.LOCAL, zero.target().bytes(), machine.compute().copyBytes()));
      case Prepare prepare -> {
        if (converts(prepare)) {
          as.compute(prepared(prepare));
        }
      }
      case Signal signal ->
          as.signal(
              peer(rank, number, signal, signal.to()),
              word(rank, number, signal, signal.flag(), signal.index()));
      case Wait wait ->
          as.await(
              peer(rank, number, wait, wait.from()),
              word(rank, number, wait, wait.flag(), wait.index()));
      case Mark mark -> as.mark(mark.number());
      case After after -> as.after(after.mark());
      case LibraryCall call -> call(call, rank, into.nextCall(), as);
    }
  }

  /// Adds a library's collective: the ranks meet, and each fetches what it needs from all others.
  /// The sums of an all-reduce are fetched in a second round. A library may choose another
  /// algorithm; on links between all pairs this one takes the least time.
  private void call(LibraryCall call, int rank, int number, Operations.OfStep as) {
    int ranks = schedule.ranks();
    int first = words + number * 2 * ROUNDS;
    meet(rank, first, as);
    switch (call.collective()) {
      case ALL_GATHER -> fetch(rank, call.x().bytes(), as);
      case REDUCE_SCATTER -> fetch(rank, call.y().bytes(), as);
      case ALL_TO_ALL -> fetch(rank, call.x().bytes() / ranks, as);
      case ALL_REDUCE -> {
        fetch(rank, call.x().bytes() / ranks, as);
        meet(rank, first + ROUNDS, as);
        fetch(rank, call.x().bytes() / ranks, as);
      }
      case BROADCAST -> {
        if (rank != call.root()) {
          as.copy(
              false,
              call.root(),
              rank,
              rank,
              number(new Work(Stage.COPY, 1, 0, call.x().bytes(), 0)));
        }
      }
      case SEND, RECEIVE, BARRIER -> {}
    }
  }

  /// Adds a barrier: in each round a rank hears of twice as many ranks.
  private void meet(int rank, int first, Operations.OfStep as) {
    int ranks = schedule.ranks();
    int word = first;
    for (int distance = 1; distance < ranks; distance *= 2) {
      as.signal((rank + distance) % ranks, word);
      as.await((rank - distance + ranks) % ranks, word);
      word++;
    }
  }

  private void fetch(int rank, long bytes, Operations.OfStep as) {
    int ranks = schedule.ranks();
    for (int i = 1; i < ranks; i++) {
      as.copy(
          i > 1 && !machine.links().serial(),
          (rank + i) % ranks,
          rank,
          rank,
          number(new Work(Stage.COPY, 1, 0, bytes, 0)));
    }
  }

  /// Adds the transfers of the parts that a sum reads from other ranks.
  private void read(Reduce reduce, int rank, Operations.OfStep as) {
    boolean with = false;
    for (var part : reduce.parts()) {
      if (part.rank() != rank) {
        as.copy(
            with && !machine.links().serial(),
            part.rank(),
            rank,
            rank,
            number(new Work(Stage.COPY, 1, 0, part.bytes(), 0)));
        with = true;
      }
    }
    if (with) {
      // The kernel that reads them adds them.
      as.join();
    }
  }

  private static void requireOwn(int rank, int number, Copy copy, Move move) {
    if (move.from().rank() != rank && move.to().rank() != rank) {
      throw wrong(
          rank, copy, number, "a rank must copy from or to itself; let one of the two ranks copy");
    }
  }

  private int peer(int rank, int number, Step step, int peer) {
    if (peer < 0 || peer >= schedule.ranks()) {
      throw wrong(
          rank,
          step,
          number,
          "the peer must be rank 0..%d but was %d".formatted(schedule.ranks() - 1, peer));
    }
    return peer;
  }

  private int word(int rank, int number, Step step, Flag flag, int index) {
    var first = firstWords.get(flag.name());
    if (first == null || index < 0 || index >= flag.words()) {
      throw wrong(
          rank,
          step,
          number,
          first == null
              ? "the schedule has no flag %s; add it to its flags".formatted(flag)
              : "flag %s has words 0..%d".formatted(flag, flag.words() - 1));
    }
    return first + index;
  }

  private int number(Work kind) {
    return numbers.computeIfAbsent(
        kind,
        _ -> {
          work.add(kind);
          return work.size() - 1;
        });
  }

  private int memory(Stage stage, long bytes, double bytesPerSecond) {
    return number(new Work(stage, memoryUnits(), bytes / bytesPerSecond * 1e9, bytes, 0));
  }

  private int memoryUnits() {
    return Math.min(machine.compute().memoryUnits(), machine.compute().units());
  }

  private int gemm(Gemm gemm) {
    int units = machine.compute().units();
    int free = Math.max(1, units - gemm.lane().reserved());
    double n = (double) gemm.weight().columns();
    double k = (double) gemm.weight().rows();
    var type = gemm.weight().buffer().dtype();
    double nanos = 0;
    double rows = 0;
    for (var tile : gemm.tiles()) {
      rows += tile.output().rows();
      nanos +=
          machine.compute().batched()
              ? 0
              : machine.gemmNanos(type, (double) tile.output().rows(), n, k);
    }
    if (machine.compute().batched()) {
      nanos = machine.gemmNanos(type, rows, n, k);
    }
    nanos = nanos * units / free;
    for (var tile : gemm.tiles()) {
      nanos += finishNanos(gemm.finish(), tile.output());
    }
    return number(new Work(Stage.GEMM, free, nanos, 0, Math.round(2 * rows * n * k)));
  }

  private int attend(Attend attend) {
    return attention(AttentionTime.nanos(attend, machine), AttentionTime.flops(attend));
  }

  private int gradient(Attend block) {
    return attention(
        AttentionTime.gradientNanos(block, machine), AttentionTime.gradientFlops(block));
  }

  private int attention(double nanos, double flops) {
    return number(
        new Work(Stage.ATTENTION, machine.compute().units(), nanos, 0, Math.round(flops)));
  }

  private int merge(Merge merge) {
    long bytes = merge.result().output().bytes() + merge.result().lse().bytes();
    for (var part : merge.parts()) {
      bytes += part.output().bytes() + part.lse().bytes();
    }
    return number(
        new Work(
            Stage.ATTENTION,
            memoryUnits(),
            bytes / machine.compute().reduceBytes() * 1e9,
            bytes,
            0));
  }

  /// Returns the time of the work on a result after its computation.
  private double finishNanos(Finish finish, Region output) {
    int passes =
        (finish.accumulate() ? 2 : 0)
            + (finish.bias().isPresent() ? 2 : 0)
            + (finish.preActivation().isPresent() ? 1 : 0);
    return output.bytes() * passes / machine.compute().reduceBytes() * 1e9
        + machine.narrowingNanos(output.buffer().dtype(), elements(output));
  }

  /// Returns the work on parts in this rank's memory. Those of others are added as they arrive.
  private int reduce(Reduce reduce, int rank) {
    long bytes = reduce.output().bytes() - reduce.linkBytes(rank);
    double nanos = finishNanos(reduce.finish(), reduce.output());
    for (var part : reduce.parts()) {
      bytes += part.bytes();
      nanos += machine.wideningNanos(part.buffer().dtype(), elements(part));
    }
    return number(
        new Work(
            Stage.REDUCE,
            memoryUnits(),
            nanos + bytes / machine.compute().reduceBytes() * 1e9,
            bytes,
            0));
  }

  private static double elements(Region region) {
    return (double) region.rows() * region.columns();
  }

  private boolean converts(Prepare prepare) {
    return machine.wideningNanos(type(prepare), 1) > 0;
  }

  private static DType type(Prepare prepare) {
    return prepare.weight().buffer().dtype();
  }

  private int prepared(Prepare prepare) {
    return number(
        new Work(
            Stage.GEMM,
            1,
            machine.wideningNanos(type(prepare), elements(prepare.weight())),
            prepare.weight().bytes(),
            0));
  }
}
