package dev.pgworker.guide;

import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/** The example of docs/flows.md does what the page says. */
class BooksTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final List<String> done = new ArrayList<>();

    private final Books.Press press = new Books.Press() {
        @Override
        public int pages(int chapter) {
            if (chapter < 0) {
                throw new IllegalArgumentException("no such chapter");
            }
            return chapter * 10;
        }

        @Override
        public synchronized void bind(String title, int pages) {
            done.add(title + ": " + pages + " pages");
        }

        @Override
        public synchronized void apologize(String title) {
            done.add("no " + title);
        }
    };

    @Test
    void theBookIsBoundAfterItsChaptersOrSomebodyApologizes() {
        db.runner()
                .withBean(Books.Press.class, () -> press)
                .withBean(Books.BookHandlers.class)
                .withBean(Books.Printing.class)
                .withPropertyValues("pgworker.auto-startup=false", "pgworker.task-defaults.render.max-attempts=1")
                .run(context -> {
                    Books.Printing printing = context.getBean(Books.Printing.class);
                    Worker worker = context.getBean(Worker.class);
                    long book = printing.print("Walden", List.of(1, 2, 3));
                    assertThat(worker.runOnce()).isEqualTo(4);
                    assertThat(done).containsExactly("Walden: 60 pages");
                    printing.printAgain("Walden", book);
                    worker.runOnce();
                    assertThat(done).containsExactly("Walden: 60 pages", "Walden: 0 pages");
                    printing.print("Ulysses", List.of(1, -2));
                    worker.runOnce();
                    assertThat(done).hasSize(3).last().isEqualTo("no Ulysses");
                });
    }
}
