package braid.natives.cuda;

import org.bytedeco.cuda.cudart.CUgraphExec_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.SizeTPointer;

/// Captured work that one call launches.
public final class GpuGraph implements AutoCloseable {
  private final Gpu gpu;
  private final CUgraphExec_st executable;
  private final long nodes;
  private boolean closed;

  private GpuGraph(Gpu gpu, CUgraphExec_st executable, long nodes) {
    this.gpu = gpu;
    this.executable = executable;
    this.nodes = nodes;
  }

  /// Instantiates the template and destroys it.
  static GpuGraph of(Gpu gpu, CUgraph_st template) {
    try (var count = new SizeTPointer(1)) {
      count.put(0);
      gpu.check("cuGraphGetNodes", cudart.cuGraphGetNodes(template, null, count));
      var executable = new CUgraphExec_st();
      gpu.check("cuGraphInstantiate", cudart.cuGraphInstantiate(executable, template, 0));
      return new GpuGraph(gpu, executable, count.get());
    } finally {
      gpu.check("cuGraphDestroy", cudart.cuGraphDestroy(template));
    }
  }

  /// Uploads the graph to the device, so that the first launch costs the same as later ones.
  public void upload(GpuStream stream) {
    gpu.use();
    gpu.check("cuGraphUpload", cudart.cuGraphUpload(executable, stream.pointer()));
  }

  public void launch(GpuStream stream) {
    gpu.use();
    gpu.check("cuGraphLaunch", cudart.cuGraphLaunch(executable, stream.pointer()));
  }

  long nodes() {
    return nodes;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.release("cuGraphExecDestroy", () -> cudart.cuGraphExecDestroy(executable));
    }
  }
}
