package braid.natives.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.bytedeco.cuda.cudart.CUstreamBatchMemOpParams_v1;

/// Memory operations in the layout of `CUstreamBatchMemOpParams`, allocated once and filled for
/// each call. Waits and writes have the same layout.
final class OperationBatch {
  static final int MOST = 64;

  private static final long EACH_BYTES = 48;
  private static final long OPERATION = 0;
  private static final long ADDRESS = 8;
  private static final long VALUE = 16;
  private static final long FLAGS = 24;
  private static final long ALIAS = 32;

  private final MemorySegment all = Arena.ofAuto().allocate(MOST * EACH_BYTES, Long.BYTES);
  private final CUstreamBatchMemOpParams_v1 pointer =
      new CUstreamBatchMemOpParams_v1(new Address(all.address()));

  void set(int index, MemoryOperation operation) {
    var position = index * EACH_BYTES;
    all.set(ValueLayout.JAVA_INT, position + OPERATION, operation.action().operation);
    all.set(ValueLayout.JAVA_LONG, position + ADDRESS, operation.address());
    all.set(ValueLayout.JAVA_LONG, position + VALUE, operation.value());
    all.set(ValueLayout.JAVA_INT, position + FLAGS, operation.action().flags);
    all.set(ValueLayout.JAVA_LONG, position + ALIAS, 0);
  }

  CUstreamBatchMemOpParams_v1 pointer() {
    return pointer;
  }
}
