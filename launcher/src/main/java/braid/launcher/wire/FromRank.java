package braid.launcher.wire;

import braid.model.MimeBundle;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
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
    switch (this) {
      case Done() -> out.writeByte(0);
      case Value value -> {
        out.writeByte(1);
        Wire.writeBundle(out, value.bundle);
      }
      case Failed failed -> {
        out.writeByte(2);
        failed.failure.write(out);
      }
      case Display display -> {
        out.writeByte(3);
        Wire.writeBundle(out, display.bundle);
        Wire.writeText(out, display.displayId);
        out.writeBoolean(display.update);
      }
      case Published published -> {
        out.writeByte(4);
        Wire.writeBundle(out, published.bundle);
      }
      case InputRequest request -> {
        out.writeByte(5);
        Wire.writeText(out, request.prompt);
      }
      case Pong pong -> {
        out.writeByte(6);
        out.writeLong(pong.number);
        out.writeLong(pong.residentBytes);
        out.writeLong(pong.heapBytes);
        out.writeInt(pong.waits.size());
        for (var wait : pong.waits) {
          Wire.writeText(out, wait);
        }
      }
      case Waiting waiting -> {
        out.writeByte(7);
        out.writeLong(waiting.step);
      }
      case IdleAnswer idle -> {
        out.writeByte(8);
        out.writeLong(idle.number);
        out.writeBoolean(idle.idle);
      }
    }
  }

  static FromRank read(DataInput in) throws IOException {
    int kind = in.readUnsignedByte();
    return switch (kind) {
      case 0 -> new Done();
      case 1 -> new Value(Wire.readBundle(in));
      case 2 -> new Failed(RankFailure.read(in));
      case 3 -> new Display(Wire.readBundle(in), Wire.readText(in), in.readBoolean());
      case 4 -> new Published(Wire.readBundle(in));
      case 5 -> new InputRequest(Wire.readText(in));
      case 6 -> {
        long number = in.readLong();
        long resident = in.readLong();
        long heap = in.readLong();
        int count = in.readInt();
        var waits = new ArrayList<String>();
        for (int i = 0; i < count; i++) {
          waits.add(Wire.readText(in));
        }
        yield new Pong(number, resident, heap, waits);
      }
      case 7 -> new Waiting(in.readLong());
      case 8 -> new IdleAnswer(in.readLong(), in.readBoolean());
      default -> throw new IOException("a rank sent a message of unknown kind " + kind);
    };
  }
}
