package braid.launcher.kernel;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.Channels.Channel;
import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import braid.launcher.kernel.output.CellPublisher;
import braid.launcher.kernel.output.DisplayContent;
import braid.launcher.kernel.output.ErrorContent;
import braid.launcher.kernel.output.Prompts;
import braid.launcher.session.Session;
import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
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

  /// The running cell; `interrupted` completes at its first interrupt, with the time
  /// (`System.nanoTime`).
  private record Running(CompletableFuture<Long> interrupted, CellPublisher publisher) {}

  private static final Duration INTERRUPT_AGAIN = Duration.ofMillis(200);

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
    var cell = running.get();
    boolean first = cell.interrupted.complete(System.nanoTime());
    prompts.release("the cell was interrupted");
    if (first) {
      repeat(cell, session::interrupt);
      schedule(REPORT_PENDING, cell, () -> reportPending(cell.publisher));
    } else if (System.nanoTime() - cell.interrupted.join() > ONE_INTERRUPT.toNanos()) {
      repeat(cell, session::insist);
    }
  }

  /// Runs an action now and repeatedly until the cell has ended: the session ignores an interrupt
  /// that arrives just before the cell starts. Repeats do not count as the user's second interrupt.
  private void repeat(Running cell, Runnable action) {
    action.run();
    schedule(INTERRUPT_AGAIN, cell, () -> repeat(cell, action));
  }

  /// Runs an action after a delay if the cell still runs; no later cell starts meanwhile.
  private void schedule(Duration delay, Running cell, Runnable action) {
    var _ =
        timer.schedule(
            () -> {
              synchronized (this) {
                if (running.equals(Optional.of(cell))) {
                  action.run();
                }
              }
            },
            delay.toMillis(),
            TimeUnit.MILLISECONDS);
  }

  private void reportPending(CellPublisher publisher) {
    var pending = session.pending();
    if (!pending.isEmpty()) {
      publisher.note(
          "interrupted, but ranks %s have not stopped yet; interrupt again to end the ranks and start new ones\n"
              .formatted(pending));
    }
  }

  /// Aborts waiting cells. The running one ends with its session.
  synchronized void stop() {
    abortedBefore = Long.MAX_VALUE;
    running.ifPresent(cell -> cell.interrupted.complete(System.nanoTime()));
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
    var cell = new Running(new CompletableFuture<>(), publisher);
    synchronized (this) {
      running = Optional.of(cell);
    }
    try {
      // A client may interrupt the cell as soon as it sees this.
      if (!execution.silent) {
        publisher.input(execution.code, executionCount);
      }
      var ranks = awaitRanks(cell);
      if (cell.interrupted.isDone()) {
        return ErrorContent.of(notStarted());
      }
      var name = execution.counted ? "cell " + executionCount : "uncounted cell";
      var outcome = ranks.run(new Cell(name, execution.code), publisher);
      if (outcome.failure().isPresent()) {
        return ErrorContent.of(outcome.failure().get());
      }
      outcome.result().ifPresent(result -> publish(execution, publisher, result));
      return succeeded(execution, ranks, publisher);
    } catch (RuntimeException | Error e) {
      return ErrorContent.of(e);
    } finally {
      synchronized (this) {
        running = Optional.empty();
      }
    }
  }

  private Session awaitRanks(Running cell) {
    var ready = session.get();
    CompletableFuture.anyOf(ready, cell.interrupted).join();
    return cell.interrupted.isDone() ? ready.getNow(null) : ready.join();
  }

  private void publish(ExecuteRequest execution, CellPublisher publisher, MimeBundle result) {
    publisher.result(result, executionCount);
    if (execution.counted) {
      history.answered(executionCount, result.text());
    }
  }

  private static JsonObject succeeded(
      ExecuteRequest execution, Session ranks, CellPublisher publisher) {
    var values = new JsonObject();
    execution.userExpressions.forEach(
        (name, expression) -> values.add(name, value(name, expression, ranks, publisher)));
    var content = new JsonObject();
    content.addProperty("status", "ok");
    content.add("user_expressions", values);
    content.add("payload", new JsonArray());
    return content;
  }

  private static JsonObject value(
      String name, String expression, Session ranks, CellPublisher publisher) {
    var outcome = ranks.run(new Cell("user expression " + name, expression), publisher);
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

  private static CellFailure notStarted() {
    var message = "interrupted while the ranks were starting; the cell did not start";
    return new CellFailure(
        CellFailure.Cause.INTERRUPTED, "Interrupted", message, List.of("Interrupted: " + message));
  }

  private void reply(Message request, JsonObject content) {
    channels.send(Channel.SHELL, Message.reply(request, "execute_reply", content));
  }
}
