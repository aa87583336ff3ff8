
#
	_deferred*not seen in training