"""What the reports of all experiments are made of: the frame of a page, HTML from parts, drawings, figures."""
