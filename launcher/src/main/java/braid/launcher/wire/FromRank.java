package braid.launcher.wire;

import braid.model.MimeBundle;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.List;

/// Message from a rank to the front. `Value`, `Failed` and `Done` answer a request; the others are
/// unrequested.
public sealed interface FromRank {
  /// Answer to a request; each request has exactly one.
  sealed interface Answer extends FromRank {}

  record Done() implements Answer {}

  record Value(MimeBundle bundle) implements Answer {}

  record Failed(RankFailure failure) implements Answer {}

  /// A display. `update` replaces the display with the same id.
  record Display(MimeBundle bundle, String displayId, boolean update) implements FromRank {}

  /// Data for the front, such as a profile.
  record Published(MimeBundle bundle) implements FromRank {}

  record InputRequest(String prompt) implements FromRank {}

  /// State of the rank: resident memory, used heap, and its current waits.
  record Pong(long number, long residentBytes, long heapBytes, List<String> waits)
      implements FromRank {}

  /// The rank waits in this step, perhaps for another rank; sent once per step.
  record Waiting(long step) implements FromRank {}

  /// Answers [ToRank.IdleQuery].
  record IdleAnswer(long number, boolean idle) implements FromRank {}

  default void write(DataOutput out) throws IOException {
    Wire.write(out, this, FromRank.class);
  }

  static FromRank read(DataInput in) throws IOException {
    return Wire.read(in, FromRank.class);
  }
}
