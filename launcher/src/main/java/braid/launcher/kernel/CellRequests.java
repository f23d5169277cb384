package braid.launcher.kernel;

import braid.launcher.cell.Cell;
import braid.launcher.cell.DisplayContent;
import braid.launcher.cell.RunningCell;
import braid.launcher.kernel.channels.Channel;
import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import braid.launcher.kernel.output.CellPublisher;
import braid.launcher.kernel.output.ErrorContent;
import braid.launcher.kernel.output.Prompts;
import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/// Runs the cells of all clients, one at a time, in order of arrival.
final class CellRequests implements AutoCloseable {
  /// Content of an `execute_request`.
  private record ExecuteRequest(
      String code,
      boolean silent,
      boolean counted,
      Map<String, String> userExpressions,
      boolean stdinAllowed,
      boolean stopOnError) {
    static ExecuteRequest of(Message request) throws MalformedMessage {
      boolean silent = request.flag("silent", false);
      return new ExecuteRequest(
          request.text("code"),
          silent,
          !silent && request.flag("store_history", true),
          expressions(request.object("user_expressions")),
          request.flag("allow_stdin", false),
          request.flag("stop_on_error", true));
    }

    private static Map<String, String> expressions(JsonObject given) throws MalformedMessage {
      var expressions = new LinkedHashMap<String, String>();
      for (var expression : given.entrySet()) {
        if (!expression.getValue().isJsonPrimitive()
            || !expression.getValue().getAsJsonPrimitive().isString()) {
          throw new MalformedMessage(
              "user_expressions must be code but `"
                  + expression.getKey()
                  + "` was "
                  + expression.getValue());
        }
        expressions.put(expression.getKey(), expression.getValue().getAsString());
      }
      return expressions;
    }
  }

  private record Running(RunningCell cell, CellPublisher publisher) {}

  /// A client may send both a message and a signal for one key press: together they are one
  /// interrupt.
  private static final Duration ONE_INTERRUPT = Duration.ofMillis(300);

  /// Time after an interrupt when the pending ranks are reported.
  private static final Duration REPORT_PENDING = Duration.ofSeconds(1);

  private final Channels channels;
  private final KernelStatus status;
  private final LazySession session;
  private final History history;
  private final Prompts prompts;
  private final ScheduledExecutorService timer;
  private final ExecutorService runner =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("kernel-cells").daemon().factory());

  private Optional<Running> running = Optional.empty();
  private boolean interrupted;
  private long arrivals;
  private long abortedBefore;
  private int executionCount;

  CellRequests(
      Channels channels,
      KernelStatus status,
      LazySession session,
      History history,
      Prompts prompts,
      ScheduledExecutorService timer) {
    this.channels = channels;
    this.status = status;
    this.session = session;
    this.history = history;
    this.prompts = prompts;
    this.timer = timer;
  }

  synchronized void submit(Message request) {
    long arrival = arrivals++;
    runner.execute(() -> serve(request, arrival));
  }

  /// Interrupts the running cell, if any. The second interrupt also ends ranks that do not stop.
  synchronized void interrupt() {
    if (running.isEmpty()) {
      return;
    }
    interrupted = true;
    prompts.release("the cell was interrupted");
    var cell = running.get().cell;
    if (!cell.isInterrupted()) {
      cell.interrupt();
      var now = running.get();
      var _ =
          timer.schedule(
              () -> reportPending(now), REPORT_PENDING.toMillis(), TimeUnit.MILLISECONDS);
    } else if (System.nanoTime() - cell.interruptedNanos() > ONE_INTERRUPT.toNanos()) {
      cell.kill();
    }
  }

  /// Reports the ranks that have not stopped. No later cell begins meanwhile.
  private synchronized void reportPending(Running cell) {
    var pending = cell.cell.pending();
    if (running.equals(Optional.of(cell)) && !pending.isEmpty()) {
      cell.publisher.note(
          "interrupted, but ranks %s have not stopped yet; interrupt again to end the ranks and start new ones\n"
              .formatted(pending));
    }
  }

  /// Aborts waiting cells. The running one ends with its session.
  synchronized void stop() {
    abortedBefore = Long.MAX_VALUE;
    running.ifPresent(now -> now.cell.interrupt());
  }

  @Override
  public void close() {
    runner.shutdown();
  }

  private void serve(Message request, long arrival) {
    status.cellBegins(request);
    try {
      if (isAborted(arrival)) {
        var aborted = new JsonObject();
        aborted.addProperty("status", "aborted");
        aborted.addProperty("execution_count", executionCount);
        reply(request, aborted);
        return;
      }
      var execution = ExecuteRequest.of(request);
      var content = execute(request, execution);
      var reply = Message.reply(request, "execute_reply", content);
      boolean _ = channels.deliver(Channel.SHELL, reply).join();
      if (execution.stopOnError && content.get("status").getAsString().equals("error")) {
        abortWaiting();
      }
    } catch (MalformedMessage e) {
      reply(request, ErrorContent.of(e));
    } finally {
      status.cellEnds(request);
    }
  }

  private synchronized boolean isAborted(long arrival) {
    return arrival < abortedBefore;
  }

  /// Aborts all requests that arrived before the failure was published.
  private synchronized void abortWaiting() {
    abortedBefore = Math.max(abortedBefore, arrivals);
  }

  private JsonObject execute(Message request, ExecuteRequest execution) {
    if (execution.counted) {
      executionCount++;
      history.add(executionCount, execution.code);
    }
    var publisher =
        new CellPublisher(
            channels, prompts, timer, request, execution.silent, execution.stdinAllowed);
    var content = run(execution, publisher);
    if (content.get("status").getAsString().equals("error")) {
      publisher.error(content);
    }
    publisher.flush();
    content.addProperty("execution_count", executionCount);
    return content;
  }

  private JsonObject run(ExecuteRequest execution, CellPublisher publisher) {
    var name = execution.counted ? "cell " + executionCount : "uncounted cell";
    var cell = interruptible(new Cell(name, execution.code), publisher);
    try {
      // A client may interrupt the cell as soon as it sees this.
      if (!execution.silent) {
        publisher.input(execution.code, executionCount);
      }
      session.begin(cell, publisher);
      var outcome = cell.await();
      if (outcome.failure().isPresent()) {
        return ErrorContent.of(outcome.failure().get());
      }
      outcome.result().ifPresent(result -> publish(execution, publisher, result));
      return succeeded(execution, publisher);
    } catch (RuntimeException | Error e) {
      return ErrorContent.of(e);
    } finally {
      synchronized (this) {
        running = Optional.empty();
        interrupted = false;
      }
    }
  }

  /// Returns a cell that interrupts reach from now on. An earlier interrupt of the same request
  /// ends it too.
  private synchronized RunningCell interruptible(Cell cell, CellPublisher publisher) {
    var handle = new RunningCell(cell);
    running = Optional.of(new Running(handle, publisher));
    if (interrupted) {
      handle.interrupt();
    }
    return handle;
  }

  private void publish(ExecuteRequest execution, CellPublisher publisher, MimeBundle result) {
    publisher.result(result, executionCount);
    if (execution.counted) {
      history.answered(executionCount, result.text());
    }
  }

  private JsonObject succeeded(ExecuteRequest execution, CellPublisher publisher) {
    var values = new JsonObject();
    execution.userExpressions.forEach(
        (name, expression) -> values.add(name, value(name, expression, publisher)));
    var content = new JsonObject();
    content.addProperty("status", "ok");
    content.add("user_expressions", values);
    content.add("payload", new JsonArray());
    return content;
  }

  private JsonObject value(String name, String expression, CellPublisher publisher) {
    var cell = interruptible(new Cell("user expression " + name, expression), publisher);
    session.begin(cell, publisher);
    var outcome = cell.await();
    if (outcome.failure().isPresent()) {
      return ErrorContent.of(outcome.failure().get());
    }
    var content = new JsonObject();
    content.addProperty("status", "ok");
    content.add(
        "data",
        outcome
            .result()
            .map(result -> DisplayContent.of(result).data())
            .orElseGet(JsonObject::new));
    content.add("metadata", new JsonObject());
    return content;
  }

  private void reply(Message request, JsonObject content) {
    channels.send(Channel.SHELL, Message.reply(request, "execute_reply", content));
  }
}
