package braid.internal.run;

import braid.internal.backend.Channels.Channel;
import braid.model.BraidException;
import braid.model.Transport;
import braid.schedule.Lane;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.SortedSet;
import java.util.TreeSet;

/// The messages by which a schedule crosses hosts whose ranks cannot address each other's memory.
///
/// The steps of a schedule are one-sided: a rank copies from and to memory of others, and raises
/// their words. Between such hosts the rank that a step touches takes part. All ranks know the
/// steps of all, so both sides derive the same messages, in the order of the lane:
///
/// ```
/// active rank, its lane          passive rank, a stream for this channel
/// copy from there                ask      ──────▶ waits, then sends the region
///                                receives ◀──────
/// copy to there                  sends    ──────▶ receives into the region
/// sum of parts there             ask      ──────▶ sends the parts; the sum reads what arrived
/// signal                         token    ──────▶ raises its own word
/// ```
///
/// The passive rank waits for nothing but the channel: the active rank has waited for all that its
/// step needs before it asks or sends. So whatever the schedule's check proves holds here too.
public final class Crossing {
  /// Most channels that touch a rank: each has a stream that may wait, and a GPU has 32 queues.
  static final int MOST_TOUCHING = 24;

  private final Schedule schedule;
  private final List<Integer> hosts;
  private final SortedSet<Channel> channels = new TreeSet<>();

  /// What a step exchanges with one rank of another host.
  sealed interface Message {
    int passive();

    /// Lets the passive rank send what the step reads.
    record Ask(int passive) implements Message {}

    /// Brings a region of the passive rank.
    ///
    /// @param to empty for scratch memory
    record Fetch(Region from, Optional<Region> to) implements Message {
      @Override
      public int passive() {
        return from.rank();
      }
    }

    /// Takes a region to the passive rank.
    record Deliver(Region from, Region to) implements Message {
      @Override
      public int passive() {
        return to.rank();
      }
    }

    /// Raises a word of the passive rank.
    record Raise(Step.Signal signal) implements Message {
      @Override
      public int passive() {
        return signal.to();
      }
    }
  }

  /// @param hosts number of each rank's host
  /// @throws BraidException if a step cannot cross hosts
  public Crossing(Schedule schedule, List<Integer> hosts) {
    this.schedule = schedule;
    this.hosts = List.copyOf(hosts);
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      for (var step : schedule.steps(rank)) {
        check(rank, step);
        for (var message : messages(rank, step)) {
          channels.add(channel(rank, step.lane(), message));
        }
      }
    }
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      int touching = touching(rank).size();
      if (touching > MOST_TOUCHING) {
        throw new BraidException(
            "GPUs exchange messages with at most %d lanes of other hosts but rank %d does with %d; take twoLevel()"
                .formatted(MOST_TOUCHING, rank, touching));
      }
    }
  }

  private void check(int rank, Step step) {
    var transport = step.lane().transport();
    if (step instanceof Step.LibraryCall && transport != Transport.NCCL_KERNELS) {
      throw new BraidException(
          "%s stays within a host but the ranks are on several; take over(NCCL_KERNELS), or world.local()"
              .formatted(transport));
    }
    boolean moves = step instanceof Step.Copy || step instanceof Step.Reduce;
    for (var access : step.accesses(rank)) {
      var region = access.region();
      if (isFar(rank, region.rank())
          && (!moves || (step instanceof Step.Reduce reduce && region.equals(reduce.output())))) {
        throw new BraidException(
            "only copies, sums of parts and signals reach GPUs of other hosts but %s uses %s; copy it first"
                .formatted(step.text(), region));
      }
    }
  }

  /// Returns whether two ranks are on different hosts.
  boolean isFar(int rank, int other) {
    return !hosts.get(rank).equals(hosts.get(other));
  }

  /// Returns all channels that the schedule uses.
  public SortedSet<Channel> channels() {
    return Collections.unmodifiableSortedSet(channels);
  }

  static Channel channel(int active, Lane lane, Message message) {
    return new Channel(active, lane.name(), message.passive());
  }

  /// Returns the channels of steps that touch a rank.
  public SortedSet<Channel> touching(int rank) {
    var all = new TreeSet<>(channels);
    all.removeIf(each -> each.passive() != rank);
    return all;
  }

  /// Returns the messages of a step, in order.
  List<Message> messages(int active, Step step) {
    return switch (step) {
      case Step.Copy copy -> messages(active, copy);
      case Step.Reduce reduce -> {
        var messages = new ArrayList<Message>();
        for (var part : reduce.parts()) {
          if (isFar(active, part.rank())) {
            messages.add(new Message.Fetch(part, Optional.empty()));
          }
        }
        yield asking(messages);
      }
      case Step.Signal signal when isFar(active, signal.to()) -> List.of(new Message.Raise(signal));
      default -> List.of();
    };
  }

  private List<Message> messages(int active, Step.Copy copy) {
    var messages = new ArrayList<Message>();
    for (var move : copy.moves()) {
      if (isFar(active, move.from().rank())) {
        messages.add(new Message.Fetch(move.from(), Optional.of(move.to())));
      } else if (isFar(active, move.to().rank())) {
        messages.add(new Message.Deliver(move.from(), move.to()));
      }
    }
    return asking(messages);
  }

  /// Puts what asks for fetched regions before all messages, so that several ranks send at once.
  private static List<Message> asking(List<Message> messages) {
    var asked = new LinkedHashSet<Integer>();
    for (var each : messages) {
      if (each instanceof Message.Fetch) {
        asked.add(each.passive());
      }
    }
    var all = new ArrayList<Message>();
    asked.forEach(passive -> all.add(new Message.Ask(passive)));
    all.addAll(messages);
    return all;
  }

  /// Returns a copy's moves within the host of its rank.
  List<Step.Move> near(int active, Step.Copy copy) {
    return copy.moves().stream()
        .filter(move -> !isFar(active, move.from().rank()) && !isFar(active, move.to().rank()))
        .toList();
  }

  /// Returns whether a rank has a region only by a message.
  boolean isFar(int rank, Region region) {
    return isFar(rank, region.rank());
  }

  Schedule schedule() {
    return schedule;
  }
}
