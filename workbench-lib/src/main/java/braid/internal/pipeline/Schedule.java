package braid.internal.pipeline;

import braid.internal.backend.Stream;

/// One way to lay out an iteration on the streams. It only gives out work and waits for nothing.
public sealed interface Schedule {
  void enqueue();

  static Schedule of(AllGatherGemm on) {
    return switch (on.how.method()) {
      case PIPELINED -> new Pipelined(on);
      case DIRECT -> new Direct(on);
      case UNFUSED -> new Unfused(on);
      case RING, BULK -> throw new IllegalStateException();
    };
  }

  /// The collective in chunks: chunk c is the c-th part of every rank's shard.
  ///
  /// ```
  /// comm    | copy chunk 0 | copy chunk 1 | copy chunk 2 |
  /// gemm-0  | own 0 |      | gemm 0              |  | own 2 | gemm 2              |
  /// gemm-1  | own 1                |      | gemm 1              |
  ///                        ^ landed 0     ^ landed 1     ^ landed 2
  /// ```
  ///
  /// What comes from the peers is multiplied when all of the chunk has landed, as behind a
  /// library's collective; own rows are there already and are multiplied in the meantime. What is
  /// left without company is part of the first chunk's copy and the last one's multiplication: more
  /// chunks make both shorter, until what each costs by itself (the link's latency, smaller
  /// multiplications) is more.
  record Pipelined(AllGatherGemm on) implements Schedule {
    @Override
    public void enqueue() {
      on.announce();
      on.peers().forEach(peer -> on.awaitInput(peer));
      for (int chunk = 0; chunk < on.how.splits(); chunk++) {
        var stream = turn(on, chunk);
        for (int peer : on.peers()) {
          on.copy(chunk, peer, part(peer, chunk));
        }
        on.multiplyOwn(chunk, part(on.place.rank(), chunk), stream);
        on.awaitLanding(chunk, stream);
        for (int peer : on.peers()) {
          on.multiplyGathered(chunk, part(peer, chunk), stream);
        }
      }
      on.peers().forEach(peer -> on.release(peer));
      on.awaitReaders();
    }

    private Slice part(int source, int chunk) {
      return on.rows(source).part(on.how.splits(), chunk);
    }
  }

  /// Peer by peer, the next rank first; each peer's shard in `splits` pieces.
  ///
  /// ```
  /// comm    | copy r+1  | copy r+2  | copy r+3  |
  /// gemm-0  | gemm own  | gemm r+1  | gemm r+2  | gemm r+3  |
  ///                     ^ landed    ^ landed    ^ landed
  /// ```
  ///
  /// Own rows are multiplied while the first peer's come, so little is left without company. Unlike
  /// a collective's, the pieces come from one peer at a time, which wants links between each pair.
  record Direct(AllGatherGemm on) implements Schedule {
    @Override
    public void enqueue() {
      on.announce();
      int piece = 0;
      on.multiplyOwn(piece, on.rows(on.place.rank()), turn(on, piece));
      for (int peer : on.peers()) {
        on.awaitInput(peer);
        for (int split = 0; split < on.how.splits(); split++) {
          piece++;
          var rows = on.rows(peer).part(on.how.splits(), split);
          var stream = turn(on, piece);
          on.copy(piece, peer, rows);
          on.awaitLanding(piece, stream);
          on.multiplyGathered(piece, rows, stream);
        }
        on.release(peer);
      }
      on.awaitReaders();
    }
  }

  /// All of the communication, then all of the multiplication: the reference that overlap is to
  /// beat.
  ///
  /// ```
  /// comm    | copy r+1  | copy r+2  | copy r+3  |
  /// gemm-0                                      | gemm                                |
  ///                                             ^ landed
  /// ```
  record Unfused(AllGatherGemm on) implements Schedule {
    @Override
    public void enqueue() {
      on.announce();
      for (int peer : on.peers()) {
        on.awaitInput(peer);
        on.copy(0, peer, on.rows(peer));
        on.release(peer);
      }
      on.copyOwn();
      var stream = on.compute.getFirst();
      on.awaitLanding(0, stream);
      on.multiplyGathered(0, new Slice(0, on.spec.m()), stream);
      on.awaitReaders();
    }
  }

  /// Pieces take turns on the streams, so that a later one may begin while an earlier one ends.
  private static Stream turn(AllGatherGemm on, int piece) {
    return on.compute.get(piece % on.compute.size());
  }
}
