package braid.schedule.plan;

import braid.model.DType;
import braid.schedule.Buffer;
import braid.schedule.Region;
import braid.schedule.Slice;

/// Columns of a buffer that are one tensor: all of them, or some of a fused tensor's.
///
/// @param name the tensor's name
record Panel(String name, Buffer buffer, Slice slice) {
  /// All columns of a buffer.
  static Panel of(Buffer buffer) {
    return new Panel(buffer.name(), buffer, new Slice(0, buffer.columns(0)));
  }

  long columns() {
    return slice.length();
  }

  long rows(int rank) {
    return buffer.rows(rank);
  }

  DType dtype() {
    return buffer.dtype();
  }

  Region on(int rank) {
    return buffer.on(rank).columns(slice);
  }

  Region on(int rank, Slice rows) {
    return buffer.on(rank, rows, slice);
  }

  /// Returns some columns of the tensor.
  Region on(int rank, Slice rows, Slice columns) {
    return buffer.on(rank, rows, columns.shifted(slice.start()));
  }

  /// Returns whether the columns of another tensor follow in the same buffer.
  boolean isBefore(Panel next) {
    return buffer.equals(next.buffer) && slice.end() == next.slice.start();
  }

  @Override
  public String toString() {
    return name;
  }
}
