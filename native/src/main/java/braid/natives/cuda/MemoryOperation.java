package braid.natives.cuda;

import org.bytedeco.cuda.global.cudart;

/// One memory operation of a batch that is enqueued by a single call.
public record MemoryOperation(Action action, long address, long value) {
  /// Operation on the 64-bit word: a write or a wait.
  public enum Action {
    WRITE(cudart.CU_STREAM_MEM_OP_WRITE_VALUE_64, cudart.CU_STREAM_WRITE_VALUE_DEFAULT),
    AT_LEAST(cudart.CU_STREAM_MEM_OP_WAIT_VALUE_64, cudart.CU_STREAM_WAIT_VALUE_GEQ),
    EQUAL(cudart.CU_STREAM_MEM_OP_WAIT_VALUE_64, cudart.CU_STREAM_WAIT_VALUE_EQ);

    final int operation;
    final int flags;

    Action(int operation, int flags) {
      this.operation = operation;
      this.flags = flags;
    }
  }
}
