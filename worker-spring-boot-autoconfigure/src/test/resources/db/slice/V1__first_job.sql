select ${worker}.add_job('hello');
