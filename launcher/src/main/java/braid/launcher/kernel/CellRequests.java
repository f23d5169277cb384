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

/// Runs the cells of all clients, one at a time, in the order they came.
final class CellRequests implements AutoCloseable {
  /// What an `execute_request` asks for.
  private record Asked(
      String code,
      boolean silent,
      boolean counted,
      Map<String, String> userExpressions,
      boolean stdinAllowed,
      boolean stopOnError) {
    static Asked of(Message request) throws MalformedMessage {
      boolean silent = request.flag("silent", false);
      return new Asked(
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

  /// The cell between its busy and its idle; `interrupted` is done once somebody wants it stopped,
  /// with the time (`System.nanoTime`).
  private record Running(CompletableFuture<Long> interrupted, CellPublisher publisher) {}

  private static final Duration INTERRUPT_AGAIN = Duration.ofMillis(200);

  /// One key of a client's may send a message and a signal: what comes together is one interrupt.
  private static final Duration ONE_INTERRUPT = Duration.ofMillis(300);

  /// A cell that has not ended so long after an interrupt will hardly end by itself.
  private static final Duration SAY_WHO_RUNS = Duration.ofSeconds(1);

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

  /// Stops the running cell; without one nothing happens. The second time it is ended even if ranks
  /// have to be.
  synchronized void interrupt() {
    if (running.isEmpty()) {
      return;
    }
    var cell = running.get();
    boolean first = cell.interrupted.complete(System.nanoTime());
    prompts.release("the cell was interrupted");
    if (first) {
      repeat(cell, session::interrupt);
      later(SAY_WHO_RUNS, cell, () -> sayWhoRuns(cell.publisher));
    } else if (System.nanoTime() - cell.interrupted.join() > ONE_INTERRUPT.toNanos()) {
      repeat(cell, session::insist);
    }
  }

  /// Tells the session now and again and again until the cell has ended: the session ignores an
  /// interrupt that comes just before the cell gets there. Repeats are not the user's second.
  private void repeat(Running cell, Runnable action) {
    action.run();
    later(INTERRUPT_AGAIN, cell, () -> repeat(cell, action));
  }

  /// Runs this if the cell still runs then; no later cell begins meanwhile.
  private void later(Duration delay, Running cell, Runnable action) {
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

  private void sayWhoRuns(CellPublisher publisher) {
    var pending = session.pending();
    if (!pending.isEmpty()) {
      publisher.note(
          "interrupted, but of the ranks %s have not stopped yet; interrupt again to end the ranks and start new ones\n"
              .formatted(pending));
    }
  }

  /// Begins no further cell: those that wait are aborted. The running one ends with its session.
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
      var asked = Asked.of(request);
      var content = execute(request, asked);
      var reply = Message.reply(request, "execute_reply", content);
      boolean _ = channels.deliver(Channel.SHELL, reply).join();
      if (asked.stopOnError && content.get("status").getAsString().equals("error")) {
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

  /// All that came before the failure was told were sent without knowing of it.
  private synchronized void abortWaiting() {
    abortedBefore = Math.max(abortedBefore, arrivals);
  }

  private JsonObject execute(Message request, Asked asked) {
    if (asked.counted) {
      executionCount++;
      history.add(executionCount, asked.code);
    }
    var publisher =
        new CellPublisher(channels, prompts, timer, request, asked.silent, asked.stdinAllowed);
    var content = run(asked, publisher);
    if (content.get("status").getAsString().equals("error")) {
      publisher.error(content);
    }
    publisher.flush();
    content.addProperty("execution_count", executionCount);
    return content;
  }

  private JsonObject run(Asked asked, CellPublisher publisher) {
    var cell = new Running(new CompletableFuture<>(), publisher);
    synchronized (this) {
      running = Optional.of(cell);
    }
    try {
      // A client may interrupt the cell as soon as it sees this.
      if (!asked.silent) {
        publisher.input(asked.code, executionCount);
      }
      var ranks = awaitRanks(cell);
      if (cell.interrupted.isDone()) {
        return ErrorContent.of(notBegun());
      }
      var name = asked.counted ? "cell " + executionCount : "uncounted cell";
      var outcome = ranks.run(new Cell(name, asked.code), publisher);
      if (outcome.failure().isPresent()) {
        return ErrorContent.of(outcome.failure().get());
      }
      outcome.result().ifPresent(result -> publish(asked, publisher, result));
      return succeeded(asked, ranks, publisher);
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

  private void publish(Asked asked, CellPublisher publisher, MimeBundle result) {
    publisher.result(result, executionCount);
    if (asked.counted) {
      history.answered(executionCount, result.text());
    }
  }

  private static JsonObject succeeded(Asked asked, Session ranks, CellPublisher publisher) {
    var values = new JsonObject();
    asked.userExpressions.forEach(
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

  private static CellFailure notBegun() {
    var message = "interrupted while the ranks were starting; the cell did not begin";
    return new CellFailure(
        CellFailure.Kind.INTERRUPTED, "Interrupted", message, List.of("Interrupted: " + message));
  }

  private void reply(Message request, JsonObject content) {
    channels.send(Channel.SHELL, Message.reply(request, "execute_reply", content));
  }
}
