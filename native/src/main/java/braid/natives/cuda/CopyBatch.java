package braid.natives.cuda;

import java.util.List;
import org.bytedeco.cuda.cudart.CUmemcpyAttributes_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.SizeTPointer;

/// Arguments of `cuMemcpyBatchAsync`, allocated once and filled for each call. The driver spreads
/// the copies of a batch over several copy engines.
final class CopyBatch implements AutoCloseable {
  static final int MOST = 64;

  private final LongPointer targets = new LongPointer(MOST);
  private final LongPointer sources = new LongPointer(MOST);
  private final SizeTPointer bytes = new SizeTPointer(MOST);
  private final CUmemcpyAttributes_v1 attributes = new CUmemcpyAttributes_v1();
  private final SizeTPointer attributesFrom = new SizeTPointer(1);

  CopyBatch() {
    attributes
        .srcAccessOrder(cudart.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
        .flags(cudart.CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
    attributesFrom.put(0, 0);
  }

  /// Enqueues the `count` copies from `first` on, at most [#MOST].
  int enqueue(List<GpuCopy> all, int first, int count, GpuStream stream) {
    for (int i = 0; i < count; i++) {
      var copy = all.get(first + i);
      targets.put(i, copy.to());
      sources.put(i, copy.from());
      bytes.put(i, copy.bytes());
    }
    return cudart.cuMemcpyBatchAsync(
        targets, sources, bytes, count, attributes, attributesFrom, 1, stream.pointer());
  }

  @Override
  public void close() {
    targets.close();
    sources.close();
    bytes.close();
    attributes.close();
    attributesFrom.close();
  }
}
