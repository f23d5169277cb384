package braid.internal.selftest;

import braid.model.GemmSpec;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/// Schedules that are written by hand, as a user writes them.
public final class WrittenSchedules {
  private WrittenSchedules() {}

  /// Returns an all-gather→GEMM over two levels. Ranks are in nodes of `inNode`, and each rank's
  /// rows cross to every other node once: to the rank at the same position there, which passes them
  /// on.
  public static Schedule twoLevel(GemmSpec spec, int ranks, int inNode) {
    var plan = Schedule.on(spec, ranks);
    var input = plan.symmetric(Part.INPUT);
    var weight = plan.local(Part.WEIGHT);
    var output = plan.local(Part.OUTPUT);
    var all = plan.symmetric("gathered", spec.dtype(), spec.m(), spec.k());
    var begun = plan.flag("begun", ranks);
    var landed = plan.flag("landed", ranks);
    var read = plan.flag("read", ranks);
    var across = plan.lane("across", Lane.Role.COMMUNICATION);
    var within = plan.lane("within", Lane.Role.COMMUNICATION);
    var math = plan.lane("math", Lane.Role.COMPUTE);
    return plan.steps(
        p -> {
          int me = p.rank();
          var partners = others(p, rank -> rank / inNode == me / inNode);
          var far = others(p, rank -> rank % inNode == me % inNode);
          partners.forEach(rank -> p.signal(within, begun, rank));
          far.forEach(rank -> p.signal(across, begun, rank));
          p.prepare(math, weight.on(me));
          p.gemm(math, 0, input.on(me), weight.on(me), output.on(me, rows(spec, ranks, me)));
          int piece = 1;
          for (int from : far) {
            var rows = rows(spec, ranks, from);
            p.await(across, begun, from);
            p.copy(across, piece, input.on(from), all.on(me, rows));
            for (int partner : partners) {
              p.signal(across, piece, landed, from, partner);
            }
            p.after(math, piece, across);
            p.gemm(math, piece, all.on(me, rows), weight.on(me), output.on(me, rows));
            piece++;
          }
          for (int from : partners) {
            for (int node = 0; node < ranks / inNode; node++) {
              int owner = node * inNode + from % inNode;
              var rows = rows(spec, ranks, owner);
              if (owner == from) {
                p.await(within, begun, from);
                p.copy(within, piece, input.on(from), all.on(me, rows));
              } else {
                p.await(within, piece, landed, owner, from);
                p.copy(within, piece, all.on(from, rows), all.on(me, rows));
              }
              p.after(math, piece, within);
              p.gemm(math, piece, all.on(me, rows), weight.on(me), output.on(me, rows));
              piece++;
            }
          }
          partners.forEach(rank -> p.signal(within, read, rank));
          far.forEach(rank -> p.signal(across, read, rank));
          partners.forEach(rank -> p.await(within, read, rank));
          far.forEach(rank -> p.await(across, read, rank));
        });
  }

  /// Returns an all-gather→GEMM whose last chunks travel first.
  public static Schedule reversed(GemmSpec spec, int ranks, int chunks) {
    var plan = Schedule.on(spec, ranks);
    var input = plan.symmetric(Part.INPUT);
    var weight = plan.local(Part.WEIGHT);
    var output = plan.local(Part.OUTPUT);
    var all = plan.local("gathered", spec.dtype(), spec.m(), spec.k());
    var begun = plan.flag("begun", ranks);
    var read = plan.flag("read", ranks);
    var comm = plan.lane("comm", Lane.Role.COMMUNICATION);
    var math = plan.lane("math", Lane.Role.COMPUTE);
    return plan.steps(
        p -> {
          int me = p.rank();
          var peers = others(p, _ -> true);
          peers.forEach(peer -> p.signal(comm, begun, peer));
          p.prepare(math, weight.on(me));
          p.gemm(math, 0, input.on(me), weight.on(me), output.on(me, rows(spec, ranks, me)));
          peers.forEach(peer -> p.await(comm, begun, peer));
          for (int chunk = chunks - 1; chunk >= 0; chunk--) {
            int piece = chunks - chunk;
            int index = chunk;
            p.copy(
                comm,
                piece,
                peers.stream()
                    .map(
                        peer -> {
                          var rows = rows(spec, ranks, peer);
                          return new Step.Move(
                              input.on(peer, new Slice(0, rows.length()).part(chunks, index)),
                              all.on(me, rows.part(chunks, index)));
                        })
                    .toList());
            p.after(math, piece, comm);
            for (int peer : peers) {
              var rows = rows(spec, ranks, peer).part(chunks, chunk);
              p.gemm(math, piece, all.on(me, rows), weight.on(me), output.on(me, rows));
            }
          }
          peers.forEach(peer -> p.signal(comm, read, peer));
          peers.forEach(peer -> p.await(comm, read, peer));
        });
  }

  /// Returns a GEMM→reduce-scatter in which every rank fetches the products of its rows and adds
  /// them.
  ///
  /// @param added true for ranks whose product is in rank 0's sum
  public static Schedule reduceScatter(GemmSpec spec, int ranks, IntPredicate added) {
    var plan = Schedule.on(spec, ranks);
    var input = plan.local(Part.INPUT);
    var weight = plan.local(Part.WEIGHT);
    var output = plan.local(Part.OUTPUT);
    var products = plan.symmetric("products", spec.outputDtype(), spec.m(), spec.n());
    long most = rows(spec, ranks, 0).length();
    var inbox = plan.local("inbox", spec.outputDtype(), ranks * most, spec.n());
    var multiplied = plan.flag("multiplied", ranks);
    var read = plan.flag("read", ranks);
    var comm = plan.lane("comm", Lane.Role.COMMUNICATION);
    var math = plan.lane("math", Lane.Role.COMPUTE);
    return plan.steps(
        p -> {
          int me = p.rank();
          var mine = rows(spec, ranks, me);
          var peers = others(p, _ -> true);
          p.prepare(math, weight.on(me));
          p.gemm(math, 0, input.on(me), weight.on(me), products.on(me));
          p.after(comm, 0, math);
          peers.forEach(peer -> p.signal(comm, multiplied, peer));
          for (int peer : peers) {
            p.await(comm, multiplied, peer);
            p.copy(comm, 1, products.on(peer, mine), place(inbox, me, peer, most, mine));
            p.signal(comm, read, peer);
          }
          p.after(math, 1, comm);
          var parts =
              IntStream.range(0, ranks)
                  .filter(rank -> me != 0 || added.test(rank))
                  .mapToObj(
                      rank ->
                          rank == me ? products.on(me, mine) : place(inbox, me, rank, most, mine))
                  .toList();
          p.reduce(math, 1, parts, output.on(me), Finish.NONE);
          peers.forEach(peer -> p.await(comm, read, peer));
        });
  }

  private static Region place(Buffer inbox, int me, int from, long most, Slice rows) {
    return inbox.on(me, new Slice(from * most, rows.length()));
  }

  public static Slice rows(GemmSpec spec, int ranks, int rank) {
    return new Slice(0, spec.m()).part(ranks, rank);
  }

  private static List<Integer> others(Program p, IntPredicate condition) {
    return IntStream.range(0, p.ranks())
        .filter(rank -> rank != p.rank() && condition.test(rank))
        .boxed()
        .toList();
  }
}
