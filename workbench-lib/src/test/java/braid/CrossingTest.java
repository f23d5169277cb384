package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.backend.Backend;
import braid.internal.backend.Channels;
import braid.internal.backend.Channels.Channel;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.pipeline.Plan;
import braid.internal.pipeline.PlanSource;
import braid.internal.resource.BufferRequest;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.internal.run.Crossing;
import braid.internal.selftest.AttentionCase;
import braid.internal.selftest.Sweep;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Transport;
import braid.model.Tuning;
import braid.natives.kernels.Drawn;
import braid.schedule.Schedule;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedSet;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Plans whose ranks have no address of memory of other hosts, on the host backend: each message is
/// sent by copies and signals and waits until it is received. Such a plan must have the bits of the
/// same plan in shared memory, which other tests compare with plain loops.
class CrossingTest {
  /// Messages of a channel in an iteration, at most.
  private static final int MOST_MESSAGES = 2048;

  /// Bytes of all messages that a rank receives in an iteration, at most.
  private static final int MOST_BYTES = 32 << 20;

  private static final int ITERATIONS = 3;

  /// No memory is at such addresses: a copy to one fails.
  private static final long NOWHERE = 1L << 62;

  private static final SplittableRandom RANDOM = new SplittableRandom(Sweep.SEED);

  private record Trial(Problem problem, Tuning tuning) {}

  /// Messages in symmetric memory. A sender waits until its message is received: nothing is
  /// buffered, so messages in another order than they are received never end.
  private static final class Mail implements Channels {
    private final List<Channel> channels;
    private final int rank;
    private final Signals signals;
    private final SymmetricMemory letters;
    private final Map<Channel, Integer> counts = new HashMap<>();
    private final Map<Channel, Long> offsets = new HashMap<>();

    Mail(SortedSet<Channel> channels, int rank, List<Integer> ranks, SymmetricSource memory) {
      int slots = channels.size() * MOST_MESSAGES;
      this.channels = List.copyOf(channels);
      this.rank = rank;
      this.signals =
          new Signals(memory.take("words of mail", Signals.bytes(slots)), ranks, rank, slots);
      this.letters = memory.take("mail", MOST_BYTES);
    }

    /// Begins an iteration: a plan that is compiled again uses the same words.
    void begin() {
      counts.clear();
      offsets.clear();
    }

    private int slot(Channel channel) {
      int number = counts.merge(channel, 1, Integer::sum) - 1;
      assertThat(number).isLessThan(MOST_MESSAGES);
      return channels.indexOf(channel) * MOST_MESSAGES + number;
    }

    private int other(Channel channel) {
      return channel.active() == rank ? channel.passive() : channel.active();
    }

    /// Returns the place of the channel's next message.
    private MemorySegment letter(int owner, Channel channel, long bytes) {
      long most = MOST_BYTES / channels.size() & -Long.BYTES;
      long end = offsets.merge(channel, Math.ceilDiv(bytes, 8) * 8, Long::sum);
      assertThat(end).isLessThanOrEqualTo(most);
      long start = channels.indexOf(channel) * most + end - Math.ceilDiv(bytes, 8) * 8;
      return letters.on(owner).asSlice(start, bytes);
    }

    @Override
    public void send(Channel channel, MemorySegment bytes, Stream stream, Work work) {
      int slot = slot(channel);
      int other = other(channel);
      if (bytes.byteSize() > 0) {
        stream.copyLocal(work, Transfer.of(bytes, letter(other, channel, bytes.byteSize())));
      }
      stream.raise(work, signals, other, slot);
      stream.await(work, signals, slot, other);
    }

    @Override
    public void receive(Channel channel, MemorySegment bytes, Stream stream, Work work) {
      int slot = slot(channel);
      int other = other(channel);
      stream.await(work, signals, slot, other);
      if (bytes.byteSize() > 0) {
        stream.copyLocal(work, Transfer.of(letter(rank, channel, bytes.byteSize()), bytes));
      }
      stream.raise(work, signals, other, slot);
    }

    @Override
    public void connect() {}

    @Override
    public void abort() {}

    @Override
    public void close() {
      signals.close();
      letters.close();
    }
  }

  /// Returns a backend whose ranks are on separate hosts.
  ///
  /// @param made takes the messages
  private static Backend apart(
      Backend backend, ProcessGroup world, List<Integer> hosts, List<Mail> made) {
    var memory = world.symmetric(MemoryKind.NATIVE);
    return (Backend)
        Proxy.newProxyInstance(
            Backend.class.getClassLoader(),
            new Class<?>[] {Backend.class},
            (_, method, arguments) ->
                switch (method.getName()) {
                  case "separateHosts" -> Optional.of(hosts);
                  case "missing" -> Optional.empty();
                  case "channels" -> {
                    @SuppressWarnings("unchecked")
                    var channels = (SortedSet<Channel>) arguments[0];
                    var mail = new Mail(channels, world.rank(), ranks(world), memory);
                    made.add(mail);
                    yield mail;
                  }
                  default -> {
                    try {
                      yield method.invoke(backend, arguments);
                    } catch (InvocationTargetException e) {
                      throw e.getCause();
                    }
                  }
                });
  }

  private static List<Integer> ranks(ProcessGroup world) {
    return IntStream.range(0, world.size()).boxed().toList();
  }

  /// Returns memory of which a rank has no address on other hosts.
  private static SymmetricSource near(ProcessGroup world, List<Integer> hosts) {
    var real = world.symmetric(MemoryKind.NATIVE);
    return new SymmetricSource() {
      @Override
      public void grant(String label, List<BufferRequest> buffers, String remedy) {
        real.grant(label, buffers, remedy);
      }

      @Override
      @SuppressWarnings("restricted")
      public SymmetricMemory take(String label, long bytes) {
        var all = real.take(label, bytes);
        var parts = new ArrayList<MemorySegment>();
        for (int rank = 0; rank < world.size(); rank++) {
          parts.add(
              hosts.get(rank).equals(hosts.get(world.rank()))
                  ? all.on(rank)
                  : MemorySegment.ofAddress(NOWHERE).reinterpret(bytes));
        }
        return new SymmetricMemory(
            parts, Optional.empty(), "apart", all.attachment(), all.free(), all.discard());
      }
    };
  }

  private static Plan plan(
      Backend backend, ProcessGroup world, Trial trial, SymmetricSource memory) {
    return Plan.of(
        backend,
        world.place(),
        ranks(world),
        trial.problem(),
        PlanSource.of(trial.tuning()),
        Map.of(),
        memory,
        world::rendezvous);
  }

  private static void run(Plan plan, int iteration) {
    var _ = plan.turn(iteration);
    plan.launch();
    plan.synchronize(() -> "the plan");
  }

  private static void compare(Trial trial, List<Integer> hosts) {
    LocalRanks.run(
        hosts.size(),
        world -> {
          var backend = world.context().backend();
          var mail = new ArrayList<Mail>();
          try (var together = plan(backend, world, trial, world.symmetric(MemoryKind.NATIVE));
              var apart =
                  plan(apart(backend, world, hosts, mail), world, trial, near(world, hosts))) {
            for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
              for (var each : together.views().entrySet()) {
                var view = each.getValue();
                long seed = 100L * iteration + 10L * world.rank() + each.getKey().port().hashCode();
                backend.access().draw(view.dtype(), view.memory(), Drawn.INTEGERS, seed);
                backend
                    .access()
                    .copy(view.memory(), apart.view(each.getKey()).orElseThrow().memory());
              }
              world.barrier();
              mail.forEach(Mail::begin);
              run(together, iteration);
              run(apart, iteration);
              world.barrier();
              for (var part : together.views().keySet()) {
                assertThat(
                        together
                            .view(part)
                            .orElseThrow()
                            .memory()
                            .mismatch(apart.view(part).orElseThrow().memory()))
                    .as("%s of %s on rank %d, hosts %s", part, trial, world.rank(), hosts)
                    .isEqualTo(-1);
              }
            }
          }
        });
  }

  private static GemmSpec gemm(int ranks) {
    int m = RANDOM.nextInt(ranks, 40);
    int n = RANDOM.nextInt(ranks, 24);
    int k = RANDOM.nextInt(ranks, 24);
    var spec =
        switch (RANDOM.nextInt(5)) {
          case 0 -> GemmSpec.allGatherGemm(m, n, k);
          case 1 -> GemmSpec.gemmReduceScatter(m, n, k);
          case 2 -> GemmSpec.gemmAllReduce(m, n, k);
          case 3 -> GemmSpec.besideAllGather(m, n, k, RANDOM.nextInt(ranks, 300));
          default -> GemmSpec.besideReduceScatter(m, n, k, RANDOM.nextInt(ranks, 300));
        };
    return RANDOM.nextBoolean() ? spec.dtype(DType.BF16) : spec;
  }

  private static Overlap overlap(int ranks) {
    int splits = RANDOM.nextInt(1, 4);
    var overlap =
        switch (RANDOM.nextInt(6)) {
          case 0 -> Overlap.unfused();
          case 1 -> Overlap.direct(splits);
          case 2 -> Overlap.ring(splits);
          case 3 -> Overlap.doubling(splits);
          case 4 -> Overlap.twoLevel(ranks > 2 && ranks % 2 == 0 ? 2 : ranks, splits);
          default -> Overlap.pipelined(splits);
        };
    return splits > 1 && RANDOM.nextInt(3) == 0 && overlap.method() != Method.UNFUSED
        ? overlap.streams(2)
        : overlap;
  }

  private static boolean isPossible(Trial trial, int ranks) {
    try {
      var _ = Schedule.of(trial.problem(), trial.tuning(), ranks);
      return true;
    } catch (BraidException e) {
      return false;
    }
  }

  private static List<Integer> hosts() {
    var all =
        List.of(
            List.of(0, 1),
            List.of(0, 0, 1, 1),
            List.of(0, 1, 0),
            List.of(0, 1, 1, 2),
            List.of(0, 0, 0, 1, 1, 1));
    return all.get(RANDOM.nextInt(all.size()));
  }

  @Test
  void gemmsThatCrossHostsHaveTheBitsOfSharedMemory() {
    int tried = 0;
    while (tried < Sweep.times(40, 400)) {
      var hosts = hosts();
      var trial = new Trial(gemm(hosts.size()), overlap(hosts.size()));
      if (isPossible(trial, hosts.size())) {
        compare(trial, hosts);
        tried++;
      }
    }
  }

  @Test
  void attentionThatCrossesHostsHasTheBitsOfSharedMemory() {
    var hosts = List.of(0, 0, 1, 1);
    var cases = AttentionCase.quick(List.of(DType.FP32, DType.BF16), hosts.size(), Sweep.SEED);
    for (var each : Sweep.oneOf(4, cases)) {
      if (each.isReplayed()) {
        continue;
      }
      boolean forward = each.pass() == AttentionCase.Pass.FORWARD;
      compare(new Trial(forward ? each.spec() : each.spec().backward(), each.tuning()), hosts);
    }
  }

  @Test
  void bothSidesOfAChannelHaveTheSameMessages() {
    var schedule = Schedule.of(GemmSpec.allGatherGemm(24, 8, 8), Overlap.twoLevel(2), 4);
    var crossing = new Crossing(schedule, List.of(0, 0, 1, 1));
    // Each row crosses once, between the ranks of one place.
    assertThat(crossing.channels())
        .allMatch(
            each -> each.active() % 2 == each.passive() % 2 && each.active() != each.passive());
    assertThat(new Crossing(schedule, List.of(0, 0, 0, 0)).channels()).isEmpty();
  }

  @Test
  void tooManyChannelsAreRefused() {
    var spec = GemmSpec.allGatherGemm(64, 64, 64);
    var hosts = IntStream.range(0, 32).map(rank -> rank / 4).boxed().toList();
    assertThat(new Crossing(Schedule.of(spec, Overlap.twoLevel(4), 32), hosts).channels())
        .isNotEmpty();
    var schedule = Schedule.of(spec, Overlap.direct(1), 32);
    assertThatThrownBy(() -> new Crossing(schedule, hosts))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "GPUs exchange messages with at most 24 lanes of other hosts but rank 0 does with 28; take twoLevel()");
  }

  @Test
  void aReplayIsRefused() {
    var trial = new Trial(GemmSpec.allGatherGemm(24, 8, 8), Overlap.direct(1).replay());
    assertThatThrownBy(() -> compare(trial, List.of(0, 1)))
        .hasMessageContaining(
            "replayed iterations stay within a host but the ranks are on several; leave out replay()");
  }

  @Test
  void aLibraryThatStaysWithinAHostIsRefused() {
    var schedule =
        Schedule.of(
            GemmSpec.allGatherGemm(24, 8, 8),
            Overlap.pipelined(1).over(Transport.NCCL_COPY_ENGINE),
            2);
    assertThatThrownBy(() -> new Crossing(schedule, List.of(0, 1)))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "nccl_copy_engine stays within a host but the ranks are on several; take over(NCCL_KERNELS), or world.local()");
  }
}
