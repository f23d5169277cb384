package braid.launcher.hosts;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.Socket;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.BooleanSupplier;

/// A stream of bytes in both directions over a [Link] that others share. A sender waits after
/// [#WINDOW] bytes that the other end has not read. So bytes that nobody reads delay no other
/// message, and the link's reader never waits.
final class Channel implements AutoCloseable {
  /// Most bytes on their way in one direction.
  static final int WINDOW = 1 << 18;

  private static final int CHUNK = 1 << 16;

  private final Link link;
  private final int number;

  // Guarded by this.
  private final ArrayDeque<byte[]> arrived = new ArrayDeque<>();
  private int begin; // of the unread part of the first
  private int unread;
  private int read; // since the other end was told
  private int credit = WINDOW;
  private boolean ended;
  private boolean closed;

  Channel(Link link, int number) {
    this.link = link;
    this.number = number;
  }

  int number() {
    return number;
  }

  /// Takes a message of the other end.
  ///
  /// @throws IOException if it sends more than the window
  synchronized void receive(LinkMessage.OfChannel message) throws IOException {
    switch (message) {
      case LinkMessage.Data data -> add(data.bytes());
      case LinkMessage.Allow allow -> credit += allow.bytes();
      case LinkMessage.Close _ -> ended = true;
    }
    notifyAll();
  }

  private void add(byte[] bytes) throws IOException {
    if (bytes.length > WINDOW - unread - read) {
      throw new IOException("channel %d got more than its window".formatted(number));
    }
    if (bytes.length > 0) {
      arrived.add(bytes);
      unread += bytes.length;
    }
  }

  /// The link has ended: no further bytes arrive.
  synchronized void end() {
    ended = true;
    notifyAll();
  }

  /// Waits for bytes; returns -1 at their end.
  private int read(byte[] target, int offset, int count) throws InterruptedIOException {
    int taken;
    int allowed = 0;
    synchronized (this) {
      awaitThat(() -> unread > 0 || ended || closed);
      taken = unread == 0 || closed ? -1 : take(target, offset, count);
      if (taken > 0 && read >= WINDOW / 2) {
        allowed = read;
        read = 0;
      }
    }
    if (taken < 0) {
      close();
    } else if (allowed > 0) {
      tell(new LinkMessage.Allow(number, allowed));
    }
    return taken;
  }

  private int take(byte[] target, int offset, int count) {
    var first = arrived.element();
    int taken = Math.min(count, first.length - begin);
    System.arraycopy(first, begin, target, offset, taken);
    begin += taken;
    if (begin == first.length) {
      arrived.remove();
      begin = 0;
    }
    unread -= taken;
    read += taken;
    return taken;
  }

  private void write(byte[] source, int offset, int count) throws IOException {
    for (int sent = 0; sent < count; ) {
      int next;
      synchronized (this) {
        awaitThat(() -> credit > 0 || ended || closed);
        if (ended || closed) {
          throw new EOFException("the other end of a channel has closed");
        }
        next = Math.min(Math.min(count - sent, credit), CHUNK);
        credit -= next;
      }
      int start = offset + sent;
      link.send(new LinkMessage.Data(number, Arrays.copyOfRange(source, start, start + next)));
      sent += next;
    }
  }

  private synchronized void awaitThat(BooleanSupplier condition) throws InterruptedIOException {
    try {
      while (!condition.getAsBoolean()) {
        wait();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while a channel was awaited");
    }
  }

  InputStream in() {
    return new InputStream() {
      @Override
      public int read() throws IOException {
        var one = new byte[1];
        return Channel.this.read(one, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(one[0]);
      }

      @Override
      public int read(byte[] bytes, int offset, int count) throws IOException {
        Objects.checkFromIndexSize(offset, count, bytes.length);
        return count == 0 ? 0 : Channel.this.read(bytes, offset, count);
      }
    };
  }

  OutputStream out() {
    return new OutputStream() {
      @Override
      public void write(int value) throws IOException {
        Channel.this.write(new byte[] {(byte) value}, 0, 1);
      }

      @Override
      public void write(byte[] bytes, int offset, int count) throws IOException {
        Objects.checkFromIndexSize(offset, count, bytes.length);
        Channel.this.write(bytes, offset, count);
      }
    };
  }

  /// Sends a stream to its end, then closes this.
  void copy(InputStream source) throws IOException {
    try (this) {
      transfer(source, out());
    }
  }

  /// Copies bytes in both directions until one end closes; then closes both.
  void join(Socket local) {
    Thread.ofVirtual().name("braid-channel").start(() -> copyTo(local));
    try {
      transfer(local.getInputStream(), out());
    } catch (IOException e) {
      // One of the ends has closed; the other learns of it below.
    } finally {
      closeBoth(local);
    }
  }

  private void copyTo(Socket local) {
    try {
      transfer(in(), local.getOutputStream());
    } catch (IOException e) {
      // As above.
    } finally {
      closeBoth(local);
    }
  }

  private static void transfer(InputStream source, OutputStream target) throws IOException {
    var chunk = new byte[CHUNK];
    for (int count = source.read(chunk); count >= 0; count = source.read(chunk)) {
      target.write(chunk, 0, count);
      target.flush();
    }
  }

  private void closeBoth(Socket local) {
    try (local) {
      close();
    } catch (IOException e) {
      // Closed by the other direction.
    }
  }

  /// Closes this end. What was written arrives; what was not read is dropped. Idempotent.
  @Override
  public void close() {
    boolean known;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      known = ended;
      notifyAll();
    }
    link.forget(this);
    if (!known) {
      tell(new LinkMessage.Close(number));
    }
  }

  private void tell(LinkMessage message) {
    try {
      link.send(message);
    } catch (IOException e) {
      // The link has ended, and with it this channel.
    }
  }
}
