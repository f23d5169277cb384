package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Owners of CUDA graph nodes. A replay is one call, so only nodes identify the work in it. CUPTI
/// reports when a node is created (while capturing, when its work is enqueued) and when an
/// executable graph copies it. Owners outlive a profile, as graphs do; node ids are never reused.
@SuppressWarnings("restricted")
final class GraphNodes {
  static final long UNKNOWN = -1;

  private static final int RESOURCE_DOMAIN = 3;
  private static final int NODE_CREATED = 13;
  private static final int NODE_CLONED = 20;

  // CUpti_ResourceData and CUpti_GraphData
  private static final long DESCRIPTOR_OFFSET = 16;
  private static final long RESOURCE_BYTES = 24;
  private static final long NODE_OFFSET = 16;
  private static final long ORIGINAL_NODE_OFFSET = 24;
  private static final long GRAPH_BYTES = 56;

  private final Set<Long> unclaimed = new LinkedHashSet<>();
  private final Map<Long, Long> originals = new HashMap<>();
  private final Map<Long, Long> owners = new HashMap<>();
  private @Nullable MemorySegment stub;

  /// Subscribes to CUPTI's events; `unsubscribe` of the result ends that.
  MemorySegment subscribe(CuptiCalls calls, String place) {
    try (var arena = Arena.ofConfined()) {
      var slot = arena.allocate(ADDRESS);
      calls.check(
          "cuptiSubscribe",
          (int) calls.subscribe.invokeExact(slot, stub(calls), MemorySegment.NULL),
          place);
      var subscriber = slot.get(ADDRESS, 0);
      for (var event : new int[] {NODE_CREATED, NODE_CLONED}) {
        calls.check(
            "cuptiEnableCallback",
            (int) calls.enableCallback.invokeExact(1, subscriber, RESOURCE_DOMAIN, event),
            place);
      }
      return subscriber;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Attributes all nodes created since the last claim to `owner`, or to nothing if it is
  /// `UNKNOWN`.
  synchronized int claim(long owner) {
    var count = unclaimed.size();
    if (owner != UNKNOWN) {
      unclaimed.forEach(node -> owners.put(node, owner));
    }
    unclaimed.clear();
    return count;
  }

  /// Returns the owner of a node, or of the node it was copied from; `UNKNOWN` if unclaimed.
  synchronized long ownerOf(long node) {
    for (Long index = node; index != null; index = originals.get(index)) {
      var owner = owners.get(index);
      if (owner != null) {
        return owner;
      }
    }
    return UNKNOWN;
  }

  synchronized void created(long node) {
    unclaimed.add(node);
  }

  /// Records a copied node, which belongs to the owner of its original. CUPTI may have reported it
  /// as created, too.
  synchronized void cloned(long node, long original) {
    unclaimed.remove(node);
    if (node != original) {
      originals.put(node, original);
    }
  }

  private synchronized MemorySegment stub(CuptiCalls calls) throws ReflectiveOperationException {
    var current = stub;
    if (current == null) {
      current = createStub(calls);
      stub = current;
    }
    return current;
  }

  private MemorySegment createStub(CuptiCalls calls) throws ReflectiveOperationException {
    var listener =
        MethodHandles.lookup()
            .findVirtual(
                Listener.class,
                "onEvent",
                MethodType.methodType(
                    void.class, MemorySegment.class, int.class, int.class, MemorySegment.class))
            .bindTo(new Listener(calls, this));
    return Linker.nativeLinker()
        .upcallStub(
            listener,
            FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT, JAVA_INT, ADDRESS),
            Arena.global());
  }

  /// Callback, run by the thread that captures or instantiates.
  record Listener(CuptiCalls calls, GraphNodes nodes) {
    /// Must not throw into CUPTI; a failure is reported when the profile ends.
    void onEvent(MemorySegment user, int domain, int event, MemorySegment data) {
      try (var arena = Arena.ofConfined()) {
        if (domain != RESOURCE_DOMAIN || (event != NODE_CREATED && event != NODE_CLONED)) {
          return;
        }
        var graph =
            data.reinterpret(RESOURCE_BYTES)
                .get(ADDRESS, DESCRIPTOR_OFFSET)
                .reinterpret(GRAPH_BYTES);
        var room = arena.allocate(JAVA_LONG);
        var node = id(graph.get(ADDRESS, NODE_OFFSET), room);
        if (event == NODE_CREATED) {
          nodes.created(node);
        } else {
          nodes.cloned(node, id(graph.get(ADDRESS, ORIGINAL_NODE_OFFSET), room));
        }
      } catch (Throwable e) {
        ActivityBuffers.fail(e);
      }
    }

    private long id(MemorySegment node, MemorySegment room) throws Throwable {
      calls.check("cuptiGetGraphNodeId", (int) calls.graphNodeId.invokeExact(node, room), "");
      return room.get(JAVA_LONG, 0);
    }
  }
}
