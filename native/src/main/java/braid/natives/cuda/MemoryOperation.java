package braid.natives.cuda;

import org.bytedeco.cuda.global.cudart;

/// One of several memory operations that a stream is given in a single call.
public record MemoryOperation(Kind kind, long address, long value) {
  /// What is done with the 64-bit word: written, or waited for.
  public enum Kind {
    WRITE(cudart.CU_STREAM_MEM_OP_WRITE_VALUE_64, cudart.CU_STREAM_WRITE_VALUE_DEFAULT),
    AT_LEAST(cudart.CU_STREAM_MEM_OP_WAIT_VALUE_64, cudart.CU_STREAM_WAIT_VALUE_GEQ),
    EQUAL(cudart.CU_STREAM_MEM_OP_WAIT_VALUE_64, cudart.CU_STREAM_WAIT_VALUE_EQ);

    final int operation;
    final int flags;

    Kind(int operation, int flags) {
      this.operation = operation;
      this.flags = flags;
    }
  }
}
