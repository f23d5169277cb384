package braid.launcher.rank;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.function.Consumer;

/// `System.in` of a rank: requests a line from the front whenever it is empty.
final class StandardInput extends InputStream {
  private final Consumer<String> request;
  private final ArrayBlockingQueue<Optional<String>> answers = new ArrayBlockingQueue<>(1);
  private byte[] line = new byte[0];
  private int next;

  StandardInput(Consumer<String> request) {
    this.request = request;
  }

  /// Adds the front's answer. If no read waits for it any more, the next request drops it.
  void answer(String text, boolean end) {
    var _ = answers.offer(end ? Optional.empty() : Optional.of(text));
  }

  @Override
  public int read() throws IOException {
    return fill() ? line[next++] & 0xff : -1;
  }

  @Override
  public int read(byte[] bytes, int offset, int length) throws IOException {
    if (length == 0) {
      return 0;
    }
    if (!fill()) {
      return -1;
    }
    int count = Math.min(length, line.length - next);
    System.arraycopy(line, next, bytes, offset, count);
    next += count;
    return count;
  }

  @Override
  public int available() {
    return line.length - next;
  }

  private boolean fill() throws IOException {
    if (next < line.length) {
      return true;
    }
    try {
      answers.clear();
      request.accept("");
      var answer = answers.take();
      if (answer.isEmpty()) {
        return false;
      }
      line = (answer.get() + "\n").getBytes(StandardCharsets.UTF_8);
      next = 0;
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("reading a line was interrupted", e);
    }
  }
}
