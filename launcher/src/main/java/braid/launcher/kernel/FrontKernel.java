package braid.launcher.kernel;

import braid.launcher.kernel.channels.Channel;
import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.CurveKeys;
import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import braid.launcher.kernel.output.ErrorContent;
import braid.launcher.kernel.output.Prompts;
import braid.launcher.session.Session;
import braid.model.BraidException;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.Supplier;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.jspecify.annotations.Nullable;

/// Jupyter's side of a `Session`. Three kinds of requests do not block each other: cells, in order;
/// queries about code, answered by the front's compiler; and requests answered at once, such as
/// `interrupt_request` and `kernel_info_request`. So a page that is reloaded during a long cell
/// finds its kernel, and completion keeps working.
public final class FrontKernel implements AutoCloseable {
  /// Produces the content of a reply.
  @FunctionalInterface
  private interface Answer {
    JsonObject to(Message request) throws MalformedMessage;
  }

  private final String version;
  private final Supplier<String> backend;
  private final Channels channels;
  private final KernelStatus status;
  private final LazySession session;
  private final CellRequests cells;
  private final Prompts prompts;
  private final EditorQueries questions;
  private final History history = new History();
  private final ExecutorService queries = thread("kernel-questions");
  private final ExecutorService control = thread("kernel-control");
  private final ScheduledExecutorService timer =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().name("kernel-timer").daemon().factory());
  private final CompletableFuture<Void> ended = new CompletableFuture<>();

  /// Binds the sockets and starts to answer; the session starts in parallel.
  ///
  /// @param version Braid's version for clients
  /// @param keys of CURVE; empty for sockets without encryption
  /// @param backend backend of the ranks, for the banner
  public FrontKernel(
      String version,
      KernelConnectionProperties connection,
      Optional<CurveKeys> keys,
      Supplier<String> backend,
      Supplier<Session> start) {
    this.version = version;
    this.backend = backend;
    channels =
        new Channels(
            connection,
            keys,
            new Channels.Receiver() {
              @Override
              public void receive(Channel channel, Message message) {
                FrontKernel.this.receive(channel, message);
              }

              @Override
              public void tooLarge(Channel channel, Message message, long bytes) {
                refuse(channel, message, bytes);
              }
            });
    status = new KernelStatus(channels);
    session = new LazySession(start);
    prompts = new Prompts(channels);
    questions = new EditorQueries(session);
    cells = new CellRequests(channels, status, session, history, prompts, timer);
    channels.start();
    status.starting();
    var _ = session.get();
    var _ = channels.ended().whenComplete(this::socketsBroke);
  }

  /// Returns the port of each channel.
  public Map<Channel, Integer> ports() throws IOException {
    return channels.ports();
  }

  /// Completes when a client has asked the kernel to end and has its reply; fails if the sockets
  /// break.
  public CompletableFuture<Void> ended() {
    return ended;
  }

  /// Ends the kernel when `other` completes.
  public void endWith(CompletableFuture<?> cause) {
    var _ = cause.thenRun(() -> ended.complete(null));
  }

  /// Interrupts the running cell, as `interrupt_request` does.
  public void interrupt() {
    cells.interrupt();
  }

  /// Ends the ranks, sends pending messages and closes the sockets. Further calls have no effect.
  @Override
  public void close() {
    cells.stop();
    prompts.release("the kernel ends");
    session.close();
    // Requests may arrive until the sockets are closed, so the threads must still run.
    channels.close();
    cells.close();
    queries.shutdownNow();
    control.shutdownNow();
    timer.shutdownNow();
    if (channels.dropped() > 0) {
      System.err.println(
          "braid kernel: dropped " + channels.dropped() + " messages and connections in all");
    }
  }

  private void socketsBroke(@Nullable Void closed, @Nullable Throwable failure) {
    if (failure != null) {
      ended.completeExceptionally(failure);
    }
  }

  /// Dispatches a message; runs on the thread of the sockets, so it must not block.
  private void receive(Channel channel, Message message) {
    if (channel == Channel.STDIN) {
      prompts.answered(message);
      return;
    }
    switch (message.type()) {
      case "execute_request" -> cells.submit(message);
      case "complete_request" -> answer(queries, channel, message, questions::complete);
      case "inspect_request" -> answer(queries, channel, message, questions::inspect);
      case "is_complete_request" -> answer(queries, channel, message, questions::isComplete);
      case "kernel_info_request" ->
          answer(control, channel, message, _ -> KernelInfo.content(version, backend.get()));
      case "history_request" -> answer(control, channel, message, history::answer);
      case "comm_info_request" -> answer(control, channel, message, _ -> noComms());
      case "comm_open" -> control.execute(() -> during(message, () -> closeComm(message)));
      case "comm_msg", "comm_close" -> control.execute(() -> during(message, () -> {}));
      case "interrupt_request" -> answer(control, channel, message, _ -> interrupted());
      case "shutdown_request" -> control.execute(() -> shutDown(channel, message));
      default -> answer(control, channel, message, FrontKernel::unknown);
    }
  }

  /// Answers a message that was too large to be read. The error is published too, since pages show
  /// no other.
  private void refuse(Channel channel, Message request, long bytes) {
    var error =
        ErrorContent.of(
            new BraidException(
                "a message must have at most %d MiB but this %s has %.1f MiB; keep data in a file and read it in the cell"
                    .formatted(
                        Message.MAX_BYTES >> 20, request.type(), bytes / (double) (1 << 20))));
    control.execute(
        () ->
            during(
                request,
                () -> {
                  if (request.type().equals("execute_request")) {
                    channels.send(
                        Channel.IOPUB, Message.publication(Optional.of(request), "error", error));
                  }
                  reply(channel, request, error);
                }));
  }

  private void answer(Executor executor, Channel channel, Message request, Answer answer) {
    executor.execute(
        () -> during(request, () -> reply(channel, request, content(request, answer))));
  }

  private void during(Message request, Runnable work) {
    status.busy(request);
    try {
      work.run();
    } finally {
      status.idle(request);
    }
  }

  private static JsonObject content(Message request, Answer answer) {
    try {
      var content = answer.to(request);
      content.addProperty(
          "status", content.has("status") ? content.get("status").getAsString() : "ok");
      return content;
    } catch (MalformedMessage | RuntimeException | Error e) {
      return ErrorContent.of(e);
    }
  }

  private void reply(Channel channel, Message request, JsonObject content) {
    var type = request.type().replaceFirst("_request$", "") + "_reply";
    channels.send(channel, Message.reply(request, type, content));
  }

  private JsonObject interrupted() {
    interrupt();
    return new JsonObject();
  }

  private void shutDown(Channel channel, Message request) {
    during(
        request,
        () -> {
          var content =
              content(
                  request,
                  shutdown -> {
                    var restart = new JsonObject();
                    restart.addProperty("restart", shutdown.flag("restart", false));
                    return restart;
                  });
          reply(channel, request, content);
          var message = Message.publication(Optional.of(request), "shutdown_reply", content);
          channels.send(Channel.IOPUB, message);
        });
    ended.complete(null);
  }

  private static JsonObject noComms() {
    var content = new JsonObject();
    content.add("comms", new JsonObject());
    return content;
  }

  /// Closes a comm: the protocol's answer to an unknown target.
  private void closeComm(Message request) {
    var content = new JsonObject();
    content.add("comm_id", request.content().get("comm_id"));
    content.add("data", new JsonObject());
    channels.send(Channel.IOPUB, Message.publication(Optional.of(request), "comm_close", content));
  }

  private static JsonObject unknown(Message request) throws MalformedMessage {
    throw new MalformedMessage("this kernel does not support " + request.type());
  }

  private static ExecutorService thread(String name) {
    return Executors.newSingleThreadExecutor(Thread.ofPlatform().name(name).daemon().factory());
  }
}
