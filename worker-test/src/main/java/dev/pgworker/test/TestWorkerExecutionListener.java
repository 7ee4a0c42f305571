package dev.pgworker.test;

import org.springframework.test.context.TestContext;
import org.springframework.test.context.TestContextAnnotationUtils;
import org.springframework.test.context.support.AbstractTestExecutionListener;

/** Prepares the {@link TestWorker} for each test method, before its transaction begins. */
final class TestWorkerExecutionListener extends AbstractTestExecutionListener {

    /** Before the listener that begins transactions, and after the one that injects. */
    private static final int ORDER = 3_500;

    @Override
    public int getOrder() {
        return ORDER;
    }

    @Override
    public void beforeTestMethod(TestContext test) {
        AutoConfigureTestWorker annotation =
                TestContextAnnotationUtils.findMergedAnnotation(test.getTestClass(), AutoConfigureTestWorker.class);
        if (annotation == null) {
            return;
        }
        test.getApplicationContext().getBeansOfType(TestWorker.class).values().forEach(worker -> {
            if (annotation.clearBeforeEach()) {
                worker.clear();
            }
            worker.forgetRuns();
        });
    }
}
