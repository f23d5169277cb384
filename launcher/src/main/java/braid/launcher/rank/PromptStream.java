package braid.launcher.rank;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// `System.out` of a rank: buffered, so that many small prints need few system calls, but flushed
/// within milliseconds. It writes to the process's descriptor, as native code does, so both use one
/// pipe.
final class PromptStream extends OutputStream {
  private static final int BUFFER_BYTES = 1 << 15;
  private static final long LINGER_NANOS = 10_000_000;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition written = lock.newCondition();
  private final FileOutputStream out;
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private int used;

  PromptStream(FileDescriptor descriptor, String name) {
    out = new FileOutputStream(descriptor);
    Thread.ofPlatform().daemon().name("braid-flush-" + name).start(this::flushAfterAMoment);
  }

  @Override
  public void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    lock.lock();
    try {
      if (length > BUFFER_BYTES - used) {
        drain();
      }
      if (length > BUFFER_BYTES) {
        out.write(bytes, offset, length);
        return;
      }
      System.arraycopy(bytes, offset, buffer, used, length);
      if (used == 0) {
        written.signal();
      }
      used += length;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void flush() throws IOException {
    lock.lock();
    try {
      drain();
    } finally {
      lock.unlock();
    }
  }

  private void drain() throws IOException {
    if (used > 0) {
      int count = used;
      used = 0;
      out.write(buffer, 0, count);
    }
  }

  private void flushAfterAMoment() {
    lock.lock();
    try {
      while (true) {
        while (used == 0) {
          written.await();
        }
        long left = LINGER_NANOS;
        while (left > 0 && used > 0) {
          left = written.awaitNanos(left);
        }
        drain();
      }
    } catch (InterruptedException | IOException e) {
      // The front closed its end of the pipe, or the rank is ending.
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }
}
